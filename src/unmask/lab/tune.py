"""Find lam, the selection's knob and the block on few examples, by successive halving."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeVar

from unmask.errors import LabError
from unmask.lab.aup import RatePoint, aup
from unmask.lab.benchmarks import Example
from unmask.lab.grading import Tools
from unmask.lab.summary import Comparison, Summary
from unmask.lab.sweep.grid import Setting
from unmask.lab.sweep.plan import Sessions, work_of
from unmask.lab.sweep.run import run, summaries
from unmask.lab.sweep.run_options import LastModel, ProgressListener, RunOptions

LAMS = (0.0, 0.5, 1.0, 5.0, 15.0, 30.0)
KNOBS = {
    "eb": (0.005, 0.05, 0.1, 0.5, 1.0, 2.0),
    "threshold": (0.6, 0.7, 0.8, 0.9, 0.95),
}
Block = int | Literal["full"]  # positions per block
SLACK = 1.05  # the mean NFE may exceed the limit by this factor

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
        """The usual setting with this rule and block."""
        return replace(usual, options=replace(usual.options, rule=self.rule, block=self.block))


Curve = tuple[Arm, ...]  # arms that differ in the knob alone


@dataclass(frozen=True)
class Round(Generic[T]):
    """One round of halving: the number of examples, and the value of each arm."""

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
    """Arms grouped by lam and block, in the order of the knob."""
    groups: dict[tuple[float, Block], list[Arm]] = {}
    for each in grid:
        groups.setdefault((each.lam, each.block), []).append(each)
    return [tuple(members) for members in groups.values()]


def split(examples: Sequence[Example], calibration: int) -> tuple[list[Example], list[Example]]:
    """Split examples by a hash of their names: `calibration` of them, and the held-out rest."""
    if not 0 < calibration < len(examples):
        raise LabError(
            f"--calibration must be from 1 to {len(examples) - 1}, so that examples are left to "
            f"report on, got {calibration}"
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
        most: the number of examples.
        budget: decoded examples in all rounds together; each round spends an equal share.
        value: the values of some arms on the first n examples; larger is better.
        cost: decodings that an arm needs for one example.
    """
    rounds = max(1, math.ceil(math.log2(len(arms))))
    if budget < len(arms) * cost * rounds:
        raise LabError(
            f"--budget must be >= {len(arms) * cost * rounds} for {len(arms)} arms, got {budget}; "
            "give fewer --lam or --block, or more budget"
        )
    left, results = list(arms), []
    for _ in range(rounds):
        count = min(most, budget // (rounds * len(left) * cost))
        pairs = list(zip(left, value(left, count), strict=True))
        ranked = sorted(pairs, key=lambda pair: -pair[1])  # stable: ties keep their order
        results.append(Round(count, tuple(ranked)))
        left = [arm for arm, _ in ranked[: max(1, math.ceil(len(ranked) / 2))]]
        if len(left) == 1:
            break
    return results


def worth(summary: Summary, forwards: float) -> float:
    """Accuracy if the mean NFE is at most `forwards`; otherwise a negative number."""
    nfe = summary.mean("nfe")
    return summary.accuracy() if nfe <= SLACK * forwards else -nfe / forwards


def area(summaries: Sequence[Summary], best: float) -> float:
    """AUP of a curve over nominal tokens per forward; `best` is the best accuracy of all curves."""
    points = [RatePoint(each.rates["nominal"], 100 * each.accuracy()) for each in summaries]
    return aup(points, best).value


@dataclass
class Tuner:
    """Decodes arms on examples. Examples that the store has already are not decoded again."""

    usual: Setting  # all but the rule and the block
    calibration: Sequence[Example]
    budget: int
    options: RunOptions
    tools: Tools
    progress: ProgressListener
    say: Callable[[str], None]
    models: LastModel = field(default_factory=LastModel)
    sessions: Sessions = field(default_factory=Sessions)

    def by_forwards(self, grid: Sequence[Arm], most: float) -> Arm:
        """The most accurate arm whose mean NFE is at most `most`."""

        def value(arms: Sequence[Arm], count: int) -> list[float]:
            measured = self.summaries(arms, self.calibration[:count])
            return [worth(measured[arm], most) for arm in arms]

        rounds = halving(grid, len(self.calibration), self.budget, value)
        for each in rounds:
            best, value_of_best = each.values[0]
            within = f"{100 * value_of_best:.1f}%" if value_of_best >= 0 else ""
            shown = within or f"none within {most:g} forwards"
            self.say(
                f"{len(each.values):>4} settings on {each.examples} examples: best {best.rule}, "
                f"block {best.block}, {shown}"
            )
        winner, last = rounds[-1].values[0]
        if last < 0:
            raise LabError(f"no setting stays within {most:g} forwards; ask for more of them")
        return winner

    def by_area(self, grid: Sequence[Arm]) -> Arm:
        """The fastest arm within a point of the best accuracy, on the curve with the best AUP."""

        def value(some: Sequence[Curve], count: int) -> list[float]:
            every = [each for curve in some for each in curve]
            measured = self.summaries(every, self.calibration[:count])
            best = max(100 * each.accuracy() for each in measured.values())
            return [area([measured[each] for each in curve], best) for curve in some]

        arms = curves(grid)
        rounds = halving(arms, len(self.calibration), self.budget, value, len(arms[0]))
        for each in rounds:
            curve, best = each.values[0]
            self.say(
                f"{len(each.values):>4} curves on {each.examples} examples: best lam "
                f"{curve[0].lam:g}, block {curve[0].block}, AUP {best:.1f}"
            )
        chosen = rounds[-1].values[0][0]
        measured = self.summaries(chosen, self.calibration[: rounds[-1].examples])
        most = max(each.accuracy() for each in measured.values())
        near = [each for each in chosen if measured[each].accuracy() >= most - 0.01]
        return min(near, key=lambda each: measured[each].mean("nfe"))

    def summaries(self, arms: Sequence[Arm], examples: Sequence[Example]) -> dict[Arm, Summary]:
        """Decode and grade the missing examples of all arms, then summarise each arm."""
        session = self.sessions.of(self.usual)
        works = {arm: work_of(arm.setting(self.usual), session, list(examples)) for arm in arms}
        left = run(list(works.values()), self.options, self.tools, self.progress, self.models)
        if left:
            raise LabError(f"other workers hold {left} examples; run again when they are done")
        return dict(zip(works, summaries(self.options.store, list(works.values())), strict=True))

    def report(
        self, winner: Arm, held_out: Sequence[Example], grid: Sequence[Arm], most: float | None
    ) -> None:
        """Say how the winner does on held-out examples, and how far the best of `grid` is ahead."""
        measured = self.summaries(list(grid) or [winner], held_out)
        mine = measured[winner]
        low, high = mine.interval()
        self.say(
            f"\nchosen: {winner.rule}, block {winner.block}\n"
            f"held-out, {mine.count} examples: {100 * mine.accuracy():.1f}% "
            f"[{100 * low:.1f}, {100 * high:.1f}] at {mine.mean('nfe'):.1f} forwards, "
            f"{mine.rates['effective']:.2f} tokens per forward"
        )
        if not grid:
            return
        limit = mine.mean("nfe") if most is None else most
        within = [arm for arm in grid if measured[arm].mean("nfe") <= SLACK * limit]
        best = max(within, key=lambda arm: measured[arm].accuracy(), default=winner)
        pair = Comparison(measured[best], mine).accuracy()
        self.say(
            f"best of all {len(grid)} settings within {limit:.1f} forwards, chosen on the held-out "
            f"examples themselves: {best.rule}, block {best.block}: "
            f"{100 * measured[best].accuracy():.1f}% at {measured[best].mean('nfe'):.1f}\n"
            f"regret {0 - 100 * pair.difference:.1f} points "
            f"[{0 - 100 * pair.interval.high:.1f}, {0 - 100 * pair.interval.low:.1f}]"
        )
