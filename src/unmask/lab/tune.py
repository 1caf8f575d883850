"""Find lam, the selection's knob and the block on few examples, by successive halving."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

from unmask.errors import LabError
from unmask.lab.aup import RatePoint, aup
from unmask.lab.benchmarks import Example
from unmask.lab.summary import Summary
from unmask.lab.sweep.grid import Setting

LAMS = (0.0, 0.5, 1.0, 5.0, 15.0, 30.0)
KNOBS = {
    "eb": (0.005, 0.05, 0.1, 0.5, 1.0, 2.0),
    "threshold": (0.6, 0.7, 0.8, 0.9, 0.95),
}
Block = int | Literal["full"]  # positions per block
SLACK = 1.05  # a mean of forwards may exceed what was asked for by so much

T = TypeVar("T")


@dataclass(frozen=True)
class Arm:
    """One rule and window."""

    score: str
    lam: float
    selection: str  # eb or threshold
    knob: float
    block: Block

    @property
    def rule(self) -> str:
        """In the notation."""
        modulator = f"swd({self.lam:g}) | " if self.lam else ""
        return f"{self.score} | {modulator}{self.selection}({self.knob:g})"

    def setting(self, usual: Setting) -> Setting:
        """With all else as it is asked for."""
        return replace(usual, options=replace(usual.options, rule=self.rule, block=self.block))


Curve = tuple[Arm, ...]  # candidates that differ in the knob alone


@dataclass(frozen=True)
class Round(Generic[T]):
    """One round of halving: how many examples each arm saw, and what it was worth."""

    examples: int
    values: tuple[tuple[T, float], ...]  # best first


def candidates(
    score: str, selection: str, blocks: Sequence[Block], lams: Sequence[float] = LAMS
) -> list[Arm]:
    """The whole grid."""
    return [
        Arm(score, lam, selection, knob, block)
        for block in blocks
        for lam in lams
        for knob in KNOBS[selection]
    ]


def curves(grid: Sequence[Arm]) -> list[Curve]:
    """Candidates by lam and block, in the order of the knob."""
    found: dict[tuple[float, Block], list[Arm]] = {}
    for each in grid:
        found.setdefault((each.lam, each.block), []).append(each)
    return [tuple(members) for members in found.values()]


def split(examples: Sequence[Example], calibration: int) -> tuple[list[Example], list[Example]]:
    """So many examples to tune on, chosen by a hash of their names, and the held-out rest."""
    if not 0 < calibration < len(examples):
        raise LabError(
            f"the calibration split must leave examples to report on: of {len(examples)} it may "
            f"take 1 to {len(examples) - 1}, got {calibration}"
        )
    ordered = sorted(examples, key=lambda e: hashlib.sha256(f"tune/{e.id}".encode()).digest())
    chosen = ordered[:calibration]
    names = {each.id for each in chosen}
    return chosen, [each for each in examples if each.id not in names]


def halving(
    arms: Sequence[T],
    most: int,
    budget: int,
    value: Callable[[Sequence[T], int], Sequence[float]],
    cost: int = 1,
) -> list[Round[T]]:
    """Successive halving: all arms on a few examples, the better half on twice as many, and so on.

    Args:
        arms: what to choose from.
        most: examples there are.
        budget: example decodings in all; each round spends an equal share.
        value: of arms on the first n examples, each; larger is better.
        cost: decodings that one example takes of an arm.
    """
    rounds = max(1, math.ceil(math.log2(len(arms))))
    if budget < len(arms) * cost * rounds:
        raise LabError(
            f"--budget must be >= {len(arms) * cost * rounds} for {len(arms)} arms, got {budget}; "
            "give fewer --lam or --block, or more budget"
        )
    left, found = list(arms), []
    for _ in range(rounds):
        seen = min(most, budget // (rounds * len(left) * cost))
        pairs = list(zip(left, value(left, seen), strict=True))
        ranked = sorted(pairs, key=lambda pair: -pair[1])  # stable: ties keep their order
        found.append(Round(seen, tuple(ranked)))
        left = [arm for arm, _ in ranked[: max(1, math.ceil(len(ranked) / 2))]]
        if len(left) == 1:
            break
    return found


def worth(summary: Summary, forwards: float) -> float:
    """Accuracy if the mean NFE stays within what was asked for; else below all that does."""
    nfe = summary.mean("nfe")
    return summary.accuracy() if nfe <= SLACK * forwards else -nfe / forwards


def area(summaries: Sequence[Summary], best: float) -> float:
    """AUP of a curve at nominal tokens per forward; `best` is of all curves compared."""
    points = [RatePoint(each.rates["nominal"], 100 * each.accuracy()) for each in summaries]
    return aup(points, best).value
