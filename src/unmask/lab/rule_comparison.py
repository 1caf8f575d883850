"""RuleComparison: rules on the same examples of a task, each against the first."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unmask.errors import LabError
from unmask.lab.equal_cost import EqualCost, RuleCurve, at_equal_cost, front
from unmask.lab.report.wording import counted, points, points_span
from unmask.lab.stats import LEVEL, Mean, holm, star_rule
from unmask.lab.summary import Comparison, Summary

if TYPE_CHECKING:
    import pandas

HEADS = ("rule", "n", "accuracy %", "forwards", "tokens/forward", "difference", "p", "front")


@dataclass(frozen=True)
class Against:
    """One rule against the first."""

    curve: RuleCurve
    cost: EqualCost
    holm: float  # the p after Holm's correction for all rules but the first
    forwards: Mean | None  # more forwards per example; None where the knobs are swept

    @property
    def decided(self) -> bool:
        """Whether the difference has a star."""
        return self.holm < LEVEL

    def record(self) -> dict[str, Any]:
        """For JSON; shares are in percent."""
        return {
            "rule": self.curve.name,
            "forwards_low": self.cost.low,
            "forwards_high": self.cost.high,
            "difference": 100 * self.cost.difference,
            "difference_low": 100 * self.cost.interval.low,
            "difference_high": 100 * self.cost.interval.high,
            "p": self.cost.p,
            "p_holm": self.holm,
        }


@dataclass(frozen=True)
class RuleComparison:
    """Rules on the same examples of one task, each against the first.

    A rule has one setting, or several where its knob is swept: then rules are compared at equal
    forwards, averaged over the range of forwards that both have.
    """

    curves: tuple[RuleCurve, ...]
    command: tuple[str, ...] = ()  # that repeats the comparison

    @cached_property
    def summaries(self) -> tuple[Summary, ...]:
        """All settings, rule by rule."""
        return tuple(each for curve in self.curves for each in curve.summaries)

    @cached_property
    def swept(self) -> bool:
        """Whether some rule has several settings."""
        return len(self.summaries) > len(self.curves)

    @cached_property
    def against(self) -> list[Against]:
        """Every rule but the first, compared with it."""
        first, *others = self.curves
        costs = [at_equal_cost(first, curve) for curve in others]
        corrected = holm([cost.p for cost in costs])
        return [
            Against(curve, cost, p, None if self.swept else _forwards(first, curve))
            for curve, cost, p in zip(others, costs, corrected, strict=True)
        ]

    @cached_property
    def front(self) -> list[Summary]:
        """The settings that no other one dominates, from the fewest forwards to the most."""
        return front(self.summaries)

    def rows(self) -> list[dict[str, Any]]:
        """One row per setting: accuracy in percent, forwards, and the difference to the first.

        Intervals cover 95%. The difference is paired: the same examples under both rules. `p` is
        McNemar's exact p, `p_holm` the same after Holm's correction for all rules but the first.
        Where a knob is swept, the rows have no difference: `against` compares whole curves.
        """
        rows = [self._row(each) for each in self.summaries]
        if not self.swept:
            for row, pair in zip(rows[1:], self.against, strict=True):
                row |= {name: value for name, value in pair.record().items() if name in row}
        return rows

    def _row(self, summary: Summary) -> dict[str, Any]:
        low, high = summary.interval()
        return {
            "rule": summary.trial.rule,
            "n": summary.count,
            "accuracy": 100 * summary.accuracy(),
            "low": 100 * low,
            "high": 100 * high,
            "nfe": summary.mean("nfe"),
            "nfe_eos": summary.mean("nfe_eos"),
            "tokens_per_forward": summary.rates["effective"],
            "difference": None,
            "difference_low": None,
            "difference_high": None,
            "p": None,
            "p_holm": None,
            "front": summary in self.front,
        }

    @property
    def about(self) -> str:
        """The task and the setting that all rules share."""
        trial, count = self.summaries[0].trial, self.summaries[0].count
        return (
            f"{trial.task}, {counted(count, 'example')}, {trial.length} tokens, {trial.window}, "
            f"EOS {trial.eos}, model {trial.model}"
        )

    def verdicts(self) -> list[str]:
        """A sentence for each rule but the first."""
        return [
            _verdict(self.curves[0].name, pair, self.summaries[0].count) for pair in self.against
        ]

    def disagreements(self) -> list[dict[str, Any]]:
        """The examples that the first rule and another one do not both solve or both miss.

        Each has the rule that solves it, the rule that does not, and the command that traces both.
        Where a knob is swept, the first setting of each rule counts.
        """
        first, *others = (curve.summaries[0] for curve in self.curves)
        return [
            {
                "example": row.ask.example,
                "right": (other if gained else first).trial.rule,
                "wrong": (first if gained else other).trial.rule,
                "command": self._tracing(row.ask.example, (first, other)),
            }
            for other in others
            for row, before, gained in zip(first.rows, first.solved(), other.solved(), strict=True)
            if before != gained
        ]

    def _tracing(self, example: str, pair: Sequence[Summary]) -> str:
        rules = [each.trial.rule for each in pair]
        words = ["unmask", "compare", *rules, *self.command, "--example", example]
        return shlex.join([*words, "--trace", "traces"])

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "about": self.about,
            "settings": self.rows(),
            "against_the_first": [pair.record() for pair in self.against],
            "verdicts": self.verdicts(),
            "disagreements": self.disagreements(),
        }

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a data frame. Needs pandas."""
        try:
            import pandas
        except ImportError:
            raise LabError("to_pandas needs pandas; pip install pandas, or use rows()") from None
        return pandas.DataFrame(self.rows())

    def write(self, folder: Path | str) -> list[Path]:
        """Write compare.html, compare.md, compare.json and the plot into a folder."""
        from unmask.lab.comparison_page import write_comparison

        return list(write_comparison(self, Path(folder)))

    def cells(self) -> list[tuple[str, ...]]:
        """The table of the settings as texts, with its heading; empty columns are left out."""
        table = [HEADS, *(_cells(row) for row in self.rows())]
        kept = [i for i in range(len(HEADS)) if any(row[i] for row in table[1:])]
        return [tuple(row[i] for i in kept) for row in table]

    def curve_cells(self) -> list[tuple[str, ...]]:
        """The table of the curves at equal forwards; only the heading if no knob is swept."""
        table: list[tuple[str, ...]] = [("at equal forwards", "range", "difference", "p")]
        for pair in self.against if self.swept else []:
            span = f"{pair.cost.low:.1f} to {pair.cost.high:.1f}"
            table.append((pair.curve.name, span, _difference(pair), f"{pair.cost.p:.2g}"))
        return table

    def __str__(self) -> str:
        parts = [aligned(self.cells())]
        if self.swept and self.against:
            parts += ["", aligned(self.curve_cells())]
        return "\n".join([*parts, *self.notes, "", *self.verdicts()]).rstrip()

    @property
    def notes(self) -> list[str]:
        """What a star means, if anything is compared."""
        if not self.against:
            return []
        test = "The sign-flip test's p" if self.swept else "McNemar's exact p"
        return [f"* {star_rule(len(self.against), test)}"]

    def _repr_html_(self) -> str:
        head, *body = self.cells()
        lines = ["".join(f"<th>{escape(text)}</th>" for text in head)]
        lines += ["".join(f"<td>{escape(text)}</td>" for text in row) for row in body]
        rows = "".join(f"<tr>{line}</tr>" for line in lines)
        caption = escape(". ".join([self.about, *self.notes]))
        verdicts = "".join(f"<p>{escape(text)}</p>" for text in self.verdicts())
        return f"<table><caption>{caption}</caption>{rows}</table>{verdicts}"


def aligned(cells: Sequence[Sequence[str]]) -> str:
    """A table in plain text."""
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


def _forwards(first: RuleCurve, second: RuleCurve) -> Mean:
    return Comparison(first.summaries[0], second.summaries[0]).forwards()


def _difference(pair: Against) -> str:
    star = "*" if pair.decided else ""
    return f"{points(pair.cost.difference)}{star} {points_span(pair.cost.interval)}"


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    apart, p = "", ""
    if row["difference"] is not None:
        span = f"[{row['difference_low']:+.1f}, {row['difference_high']:+.1f}]"
        star = "*" if row["p_holm"] < LEVEL else ""
        apart, p = f"{row['difference']:+.1f}{star} {span}", f"{row['p']:.2g}"
    accuracy = f"{row['accuracy']:.1f} [{row['low']:.1f}, {row['high']:.1f}]"
    forwards, rate = f"{row['nfe']:.1f}", f"{row['tokens_per_forward']:.2f}"
    on_front = "yes" if row["front"] else ""
    return row["rule"], str(row["n"]), accuracy, forwards, rate, apart, p, on_front


def _verdict(first: str, pair: Against, count: int) -> str:
    """What the numbers say: a difference is called one only if it has a star."""
    cost = pair.cost
    size = f"{points(cost.difference)} points {points_span(cost.interval)}, p {cost.p:.2g}"
    if (corrected := f"{pair.holm:.2g}") != f"{cost.p:.2g}":
        size += f" ({corrected} after the correction)"
    if pair.decided:
        more = "more" if cost.difference > 0 else "fewer"
        outcome = f"{pair.curve.name} solves {more} examples than {first}: {size}"
    else:
        outcome = f"On {count} examples, {pair.curve.name} and {first} cannot be told apart: {size}"
    if pair.forwards is None:
        return f"{outcome}, at equal forwards from {cost.low:.1f} to {cost.high:.1f}."
    mean, interval = pair.forwards
    if interval.low <= 0 <= interval.high:
        return f"{outcome}. No difference in forwards is shown."
    spent = "fewer" if mean < 0 else "more"
    low, high = sorted(abs(end) for end in interval)
    needs = f"{pair.curve.name} needs {abs(mean):.1f} {spent} forwards [{low:.1f}, {high:.1f}]"
    return f"{outcome}. {needs}."
