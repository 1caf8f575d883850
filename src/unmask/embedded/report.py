"""A comparison as numbers, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from statistics import mean
from typing import Any

from unmask.embedded.cells import Cell
from unmask.embedded.compare import Outcome, Outcomes, Series
from unmask.lab.figures.plots import PlotCurve, PlotPoint
from unmask.lab.stats import Interval, Paired, paired, wilson


@dataclass(frozen=True)
class Summary:
    """One cell over all problems."""

    cell: Cell
    solved: tuple[bool, ...]
    nfe: float
    nfe_eos: float
    tokens: float
    length: int

    @classmethod
    def of(cls, cell: Cell, outcomes: Sequence[Outcome], length: int) -> Summary:
        return cls(
            cell,
            tuple(each.solved for each in outcomes),
            mean(each.nfe for each in outcomes),
            mean(each.nfe_eos for each in outcomes),
            mean(each.tokens for each in outcomes),
            length,
        )

    @property
    def accuracy(self) -> float:
        return sum(self.solved) / len(self.solved)

    @property
    def interval(self) -> Interval:
        return wilson(sum(self.solved), len(self.solved))

    @property
    def nominal(self) -> float:
        """Positions filled per forward."""
        return self.length / self.nfe

    @property
    def effective(self) -> float:
        """Tokens of the answer per forward that it took."""
        return self.tokens / self.nfe_eos

    def against(self, other: Summary) -> Paired:
        """How this cell differs from another on the same problems."""
        return paired(other.solved, self.solved)

    def record(self) -> dict[str, Any]:
        """For JSON; `solved` has a 0 or 1 for each problem, so that any pair can be compared."""
        low, high = self.interval
        return {
            **asdict(self.cell),
            "rule": self.cell.rule,
            "accuracy": round(self.accuracy, 4),
            "low": round(low, 4),
            "high": round(high, 4),
            "nfe": round(self.nfe, 3),
            "nfe_eos": round(self.nfe_eos, 3),
            "tokens": round(self.tokens, 3),
            "tokens_per_forward": round(self.nominal, 3),
            "effective_tokens_per_forward": round(self.effective, 3),
            "solved": "".join(str(int(each)) for each in self.solved),
        }


@dataclass(frozen=True)
class Report:
    """All cells of a comparison."""

    series: Series
    summaries: dict[Cell, Summary]

    @classmethod
    def of(cls, series: Series, outcomes: Outcomes) -> Report:
        found = {cell: Summary.of(cell, each, series.length) for cell, each in outcomes.items()}
        return cls(series, found)

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "series": asdict(self.series),
            "cells": [summary.record() for summary in self.summaries.values()],
        }

    def panels(self, cells: Sequence[Cell]) -> list[str]:
        """A table for each window and EOS policy: a line per rule, a column per lam."""
        lines = []
        for (window, eos), group in groupby(cells, key=lambda cell: (cell.window, cell.eos)):
            members = list(group)
            lams = list(dict.fromkeys(cell.lam for cell in members))
            head = "".join(f"{_lam_title(lam):<{_width(lam)}}" for lam in lams)
            lines += ["", f"{window}, EOS {_POLICIES.get(eos, eos)}", f"{'':<24}{head.rstrip()}"]
            lines += [self._line(cell, lams) for cell in members if cell.lam == lams[0]]
        return lines[1:]

    def _line(self, first: Cell, lams: Sequence[float]) -> str:
        text = f"{first.score:<11} {first.selection:<12}"
        for lam in lams:
            found = self.summaries[replace(first, lam=lam)]
            part = f"{_percent(found.accuracy)} @{found.nfe:5.1f} {found.effective:5.2f}"
            if lam:
                part += f"  {difference(found.against(self.summaries[first.baseline]))}"
            text += f"{part:<{_width(lam)}}"
        return text.rstrip()

    def losses(self, cells: Sequence[Cell]) -> list[tuple[Cell, Paired]]:
        """Where SWD is worse than lam 0 by more than chance: the interval lies below 0."""
        pairs = (
            (cell, self.summaries[cell].against(self.summaries[cell.baseline]))
            for cell in cells
            if cell.lam
        )
        return [(cell, pair) for cell, pair in pairs if pair.interval.high < 0]

    def at_equal_cost(self, cell: Cell) -> tuple[Summary, Paired] | None:
        """The best baseline of the same window and EOS policy that spends as many forwards or more.

        All lam 0 cells of the same score and kind of selection compete, whatever its knob.
        """
        mine = self.summaries[cell]
        rivals = [
            other
            for other in self.summaries.values()
            if (other.cell.score, other.cell.block, other.cell.eos, other.cell.lam)
            == (cell.score, cell.block, cell.eos, 0.0)
            and other.cell.selection.startswith(cell.selection.partition("(")[0])
            and other.nfe >= mine.nfe
        ]
        best = max(rivals, key=lambda other: (other.accuracy, -other.nfe), default=None)
        return None if best is None else (best, mine.against(best))

    def curves(self, cells: Sequence[Cell]) -> list[PlotCurve]:
        """Accuracy against forwards, a curve per lam, window and EOS policy."""
        found = []
        for key, group in groupby(cells, key=lambda c: (c.lam, c.block, c.eos)):
            lam, block, eos = key
            name = f"lam {lam:g}" + ("" if block is None else f", blocks of {block}")
            name += "" if eos == "keep" else f", EOS {_POLICIES.get(eos, eos)}"
            points = tuple(_point(self.summaries[cell]) for cell in group)
            found.append(PlotCurve(name, points, baseline=not lam))
        return found


_POLICIES = {"keep": "kept", "suppress": "suppressed", "last": "last"}


def difference(pair: Paired) -> str:
    """A paired difference in points with its interval, marked where it excludes 0."""
    low, high = pair.interval
    mark = "*" if low > 0 or high < 0 else " "
    return f"{100 * pair.difference:+5.1f} [{100 * low:+5.1f}, {100 * high:+5.1f}]{mark}"


def _percent(share: float) -> str:
    return f"{100 * share:5.1f}"


def _width(lam: float) -> int:
    return 46 if lam else 20


def _lam_title(lam: float) -> str:
    return f"lam {lam:g}"


def _point(summary: Summary) -> PlotPoint:
    low, high = summary.interval
    knob = summary.cell.selection.partition("(")[2].rstrip(")")
    return PlotPoint(knob, summary.nfe, summary.accuracy, low, high)
