"""Find the knobs of a rule and the block on few examples, by successive halving."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, Literal, TypeVar

from unmask.decoding.options import DecodingOptions
from unmask.errors import LabError
from unmask.lab.aup import RatePoint, aup
from unmask.lab.benchmarks import Example
from unmask.lab.grading import Tools
from unmask.lab.summary import Comparison, Summary
from unmask.lab.sweep.grid import Setting, spelled_out
from unmask.lab.sweep.plan import Sessions, work_of
from unmask.lab.sweep.run import run, summaries
from unmask.lab.sweep.run_options import LastModel, ProgressListener, RunOptions
from unmask.rules.part import STAGE_NAMES
from unmask.rules.registry import kind_named, kind_of, kinds, notation
from unmask.rules.rule import Rule

LAMS = "0,0.5,1,5,15,30"
Block = int | Literal["full"] | None  # positions per block; None is the recipe's
BLOCKS: tuple[Block, ...] = ("full", 32)
SLACK = 1.05  # the mean NFE may exceed the limit by this factor

T = TypeVar("T")


@dataclass(frozen=True)
class Arm:
    """One rule and window."""

    rule: str  # in the notation, or the name of a recipe
    block: Block

    def __str__(self) -> str:
        return f"{self.rule}, {_window(self.block)}"

    def setting(self, usual: Setting) -> Setting:
        """The usual setting with this rule and block."""
        return replace(usual, options=replace(usual.options, rule=self.rule, block=self.block))

    @cached_property
    def curve(self) -> str:
        """All but the knobs of the selection, in words: arms that share it make a curve."""
        rule = Rule.parse(self.rule)
        name = kind_of(rule.select).name
        parts = [f"{name}(·)" if part is rule.select else notation(part) for part in rule.parts]
        return f"{' | '.join(parts)}, {_window(self.block)}"


Curve = tuple[Arm, ...]  # arms that differ in the selection's knobs alone


def _window(block: Block) -> str:
    if block is None:
        return "the recipe's blocks"
    return "full window" if block == "full" else f"blocks of {block}"


@dataclass(frozen=True)
class Round(Generic[T]):
    """One round of halving: the number of examples, and the value of each arm."""

    examples: int
    values: tuple[tuple[T, float], ...]  # best first


def short_form(score: str, selection: str, lams: str = LAMS) -> str:
    """A rule with braces: a score, SWD with each lam, and the selection with its own grid."""
    kind = kind_named(selection)
    if kind.stage != "select":
        known = ", ".join(each.name for each in kinds("select"))
        raise LabError(
            f"{selection} is a {STAGE_NAMES[kind.stage]}, not a selection; selections: {known}"
        )
    if not kind.grid:
        raise LabError(
            f"{selection} declares no grid; write its values in braces, such as --rule "
            f"'{score} | {selection}({{1,2}})'"
        )
    return f"{score} | swd({{{lams}}}) | {selection}({kind.grid})"


def candidates(rules: Sequence[str], blocks: Sequence[Block] = ()) -> list[Arm]:
    """Every rule of these texts with braces in every block, each once.

    Without blocks, a recipe has its own, and other rules have the full window and blocks of 32.
    """
    return list(
        dict.fromkeys(
            Arm(rule, block)
            for text in rules
            for block in blocks or _own_blocks(text)
            for rule in spelled_out(text)
        )
    )


def _own_blocks(text: str) -> Sequence[Block]:
    return BLOCKS if DecodingOptions(rule=text).defaults.block is None else (None,)


def curves(grid: Sequence[Arm]) -> list[Curve]:
    """Arms that differ in the selection's knobs alone, in their order."""
    groups: dict[str, list[Arm]] = {}
    for each in grid:
        groups.setdefault(each.curve, []).append(each)
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
            "give fewer rules or blocks, or more budget"
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
        if not 0 < most < math.inf:
            raise LabError(f"--nfe must be a number > 0, got {most:g}")

        def value(arms: Sequence[Arm], count: int) -> list[float]:
            measured = self.summaries(arms, self.calibration[:count])
            return [worth(measured[arm], most) for arm in arms]

        rounds = halving(grid, len(self.calibration), self.budget, value)
        for each in rounds:
            best, value_of_best = each.values[0]
            within = f"{100 * value_of_best:.1f}%" if value_of_best >= 0 else ""
            shown = within or f"none within {most:g} forwards"
            self.say(
                f"{len(each.values):>4} settings on {each.examples} examples: best {best}, {shown}"
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
        rounds = halving(arms, len(self.calibration), self.budget, value, max(map(len, arms)))
        for each in rounds:
            curve, best = each.values[0]
            self.say(
                f"{len(each.values):>4} curves on {each.examples} examples: best {curve[0].curve}, "
                f"AUP {best:.1f}"
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
            f"\nchosen: {winner}\n"
            f"held-out, {mine.count} examples: {100 * mine.accuracy():.1f}% "
            f"[{100 * low:.1f}, {100 * high:.1f}] at {mine.mean('nfe'):.1f} forwards, "
            f"{mine.rates['effective']:.2f} tokens per forward"
        )
        if most is not None and mine.mean("nfe") > most:
            self.say(
                f"This is more than the {most:g} forwards that were asked for; to stay within them "
                "on new examples, ask for fewer."
            )
        if not grid:
            return
        limit = mine.mean("nfe") if most is None else most
        within = [arm for arm in grid if measured[arm].mean("nfe") <= SLACK * limit]
        best = max(within, key=lambda arm: measured[arm].accuracy(), default=winner)
        pair = Comparison(measured[best], mine).accuracy()
        self.say(
            f"best of all {len(grid)} settings within {limit:.1f} forwards, chosen on the held-out "
            f"examples themselves: {best}: "
            f"{100 * measured[best].accuracy():.1f}% at {measured[best].mean('nfe'):.1f}\n"
            f"regret {0 - 100 * pair.difference:.1f} points "
            f"[{0 - 100 * pair.interval.high:.1f}, {0 - 100 * pair.interval.low:.1f}]"
        )
