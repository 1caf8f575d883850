"""One table of accuracies: a line for each rule, a group of columns for each task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unmask.lab.paper import Published
from unmask.lab.report.blocks import Column, ReportTable, TableCell
from unmask.lab.report.pairs import TrialPair
from unmask.lab.report.panels import Exam
from unmask.lab.report.wording import NONE, number, p_value, percent, points, points_span, span
from unmask.lab.summary import Summary


@dataclass(frozen=True)
class TaskEntry:
    """The result of one rule on one task."""

    summary: Summary
    paper: list[Published]
    pair: TrialPair | None = None
    refusal: str = ""  # why it is not compared
    names_baseline: bool = False  # add a note if the baseline differs in more than lam

    @property
    def twins_differ(self) -> bool:
        """Whether `acc` and `acc_compat` differ for some example."""
        return self.summary.solved() != self.summary.solved("acc_compat")


@dataclass(frozen=True)
class RuleLine:
    """A line of the table: one rule and its results on all tasks."""

    rule: str
    remark: str
    entries: dict[Exam, TaskEntry]


class Notes:
    """The footnotes of a table, each printed once."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, text: str) -> str:
        """The mark of a footnote, such as (1)."""
        if text not in self.texts:
            self.texts.append(text)
        return f"({self.texts.index(text) + 1})"

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(f"{self.mark(text)} {text}" for text in self.texts)


Maker = Callable[[TaskEntry, int, Notes], TableCell]


def score_table(
    caption: str, lines: Sequence[RuleLine], every: Sequence[Exam], versus: str
) -> ReportTable:
    """A table with those columns that at least one line fills.

    Args:
        caption: above the table.
        lines: the lines in order.
        every: all exams of the report; a heading says what tells its exam apart from them.
        versus: the heading of the differences.
    """
    notes, heads = Notes(), [Column("rule", left=True)]
    rows = [[TableCell(line.rule, line.remark)] for line in lines]
    asked = {exam for line in lines for exam in line.entries}
    for exam in sorted(asked, key=lambda exam: exam.order):
        entries = [line.entries.get(exam) for line in lines]
        present = [entry for entry in entries if entry]
        most = max(entry.summary.count for entry in present)
        for name, make in _columns(present, versus).items():
            heads.append(Column(name, f"{exam.words(every)}, n {most}"))
            for row, entry in zip(rows, entries, strict=True):
                row.append(make(entry, most, notes) if entry else TableCell(NONE))
    return ReportTable(caption, tuple(heads), tuple(map(tuple, rows)), notes.lines)


def _columns(entries: Sequence[TaskEntry], versus: str) -> dict[str, Maker]:
    makers: dict[str, Maker] = {"acc %": _accuracy}
    if any(entry.twins_differ for entry in entries):
        makers["compat %"] = _compat
    makers["NFE"] = _forwards
    if any(entry.pair or entry.refusal for entry in entries):
        makers[versus] = _difference
    if any(entry.paper for entry in entries):
        makers |= {"paper acc": _paper_accuracy, "paper NFE": _paper_forwards}
    return makers


def _accuracy(entry: TaskEntry, most: int, notes: Notes) -> TableCell:
    summary = entry.summary
    fewer = "" if summary.count == most else f" n {summary.count}"
    return TableCell(percent(summary.accuracy()), span(summary.interval()) + fewer)


def _compat(entry: TaskEntry, most: int, notes: Notes) -> TableCell:
    rule = "acc_compat"
    return TableCell(percent(entry.summary.accuracy(rule)), span(entry.summary.interval(rule)))


def _forwards(entry: TaskEntry, most: int, notes: Notes) -> TableCell:
    return TableCell(number(entry.summary.mean("nfe")))


def _difference(entry: TaskEntry, most: int, notes: Notes) -> TableCell:
    if entry.refusal:
        return TableCell(NONE, notes.mark(f"Not compared: {entry.refusal}."))
    if entry.pair is None:
        return TableCell("")
    mark = ""
    if entry.names_baseline and entry.pair.other_knob:
        mark = " " + notes.mark(f"Compared with {entry.pair.first.trial.rule}, run at lam 0.")
    return difference(entry.pair, mark)


def difference(pair: TrialPair, mark: str = "") -> TableCell:
    """A difference in points with its interval and p; a star if the interval excludes 0."""
    small = f"{points_span(pair.acc.interval)} {p_value(pair.acc.p)}{mark}"
    return TableCell(points(pair.acc.difference) + ("*" if pair.tone else ""), small, pair.tone)


def _paper_accuracy(entry: TaskEntry, most: int, notes: Notes) -> TableCell:
    if not entry.paper:
        return TableCell(NONE)
    first, *others = entry.paper
    but = ", ".join(f"{each.accuracy:.1f} in {each.table}" for each in others)
    return TableCell(f"{first.accuracy:.1f}", f"but {but}" if but else "")


def _paper_forwards(entry: TaskEntry, most: int, notes: Notes) -> TableCell:
    return TableCell(number(next((each.nfe for each in entry.paper if each.nfe is not None), None)))
