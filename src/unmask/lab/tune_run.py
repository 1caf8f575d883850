"""Tuning on real decodings: every candidate's examples go through the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from unmask.errors import LabError
from unmask.lab.benchmarks import Example
from unmask.lab.grading import Tools
from unmask.lab.summary import Comparison, Summary
from unmask.lab.sweep.grid import Setting
from unmask.lab.sweep.plan import Sessions, work_of
from unmask.lab.sweep.run import run
from unmask.lab.sweep.run_options import LastModel, ProgressListener, RunOptions
from unmask.lab.sweep.store import Store
from unmask.lab.tune import SLACK, Arm, Curve, area, curves, halving, worth


@dataclass
class Tuner:
    """Decodes candidates on examples; what was decoded before is read from the store."""

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
        """The most accurate within so many forwards."""

        def value(arms: Sequence[Arm], count: int) -> list[float]:
            found = self.summaries(arms, self.calibration[:count])
            return [worth(found[arm], most) for arm in arms]

        rounds = halving(grid, len(self.calibration), self.budget, value)
        for each in rounds:
            best, found = each.values[0]
            shown = f"{100 * found:.1f}%" if found >= 0 else f"none within {most:g} forwards"
            self.say(
                f"{len(each.values):>4} settings on {each.examples} examples: best {best.rule}, "
                f"block {best.block}, {shown}"
            )
        winner, last = rounds[-1].values[0]
        if last < 0:
            raise LabError(f"no setting stays within {most:g} forwards; ask for more of them")
        return winner

    def by_area(self, grid: Sequence[Arm]) -> Arm:
        """Of the curve with the best AUP the fastest knob within a point of its best accuracy."""

        def value(some: Sequence[Curve], count: int) -> list[float]:
            every = [each for curve in some for each in curve]
            found = self.summaries(every, self.calibration[:count])
            best = max(100 * each.accuracy() for each in found.values())
            return [area([found[each] for each in curve], best) for curve in some]

        arms = curves(grid)
        rounds = halving(arms, len(self.calibration), self.budget, value, len(arms[0]))
        for each in rounds:
            curve, best = each.values[0]
            self.say(
                f"{len(each.values):>4} curves on {each.examples} examples: best lam "
                f"{curve[0].lam:g}, block {curve[0].block}, AUP {best:.1f}"
            )
        chosen = rounds[-1].values[0][0]
        found = self.summaries(chosen, self.calibration[: rounds[-1].examples])
        most = max(each.accuracy() for each in found.values())
        near = [each for each in chosen if found[each].accuracy() >= most - 0.01]
        return min(near, key=lambda each: found[each].mean("nfe"))

    def summaries(self, arms: Sequence[Arm], examples: Sequence[Example]) -> dict[Arm, Summary]:
        """Decode and grade what is missing, then read it."""
        session = self.sessions.of(self.usual)
        works = {arm: work_of(arm.setting(self.usual), session, list(examples)) for arm in arms}
        left = run(list(works.values()), self.options, self.tools, self.progress, self.models)
        if left:
            raise LabError(f"{left} examples are in the hands of other workers; run again later")
        found = {}
        with Store(self.options.store) as store:
            for arm, work in works.items():
                wanted = set(work.asks)
                rows = [row for row in store.rows(work.trial) if row.ask in wanted]
                found[arm] = Summary.of(work.trial, rows)
        return found

    def report(
        self,
        winner: Arm,
        held_out: Sequence[Example],
        grid: Sequence[Arm],
        most: float | None,
    ) -> None:
        """The choice on held-out examples; with a grid, what the best of it would have given."""
        found = self.summaries(list(grid) or [winner], held_out)
        mine = found[winner]
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
        within = [arm for arm in grid if found[arm].mean("nfe") <= SLACK * limit]
        best = max(within, key=lambda arm: found[arm].accuracy(), default=winner)
        pair = Comparison(found[best], mine).accuracy()
        self.say(
            f"best of all {len(grid)} settings within {limit:.1f} forwards, chosen on the held-out "
            f"examples themselves: {best.rule}, block {best.block}: "
            f"{100 * found[best].accuracy():.1f}% at {found[best].mean('nfe'):.1f}\n"
            f"regret {0 - 100 * pair.difference:.1f} points "
            f"[{0 - 100 * pair.interval.high:.1f}, {0 - 100 * pair.interval.low:.1f}]"
        )
