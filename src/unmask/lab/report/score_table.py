"""One table of accuracies: a line per rule, a group of columns per task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unmask.lab.paper import Published
from unmask.lab.report.blocks import Cell, Column, Table
from unmask.lab.report.pairs import Pair
from unmask.lab.report.panels import Exam
from unmask.lab.report.wording import NONE, number, p_value, percent, points, points_span, span
from unmask.lab.summary import Summary


@dataclass(frozen=True)
class Entry:
    """One rule on one task."""

    found: Summary
    paper: list[Published]
    pair: Pair | None = None
    refusal: str = ""  # why it is not compared
    names_baseline: bool = False  # where the baseline differs in more than lam

    @property
    def twins_differ(self) -> bool:
        return self.found.solved() != self.found.solved("acc_compat")


@dataclass(frozen=True)
class Line:
    """One rule on every task."""

    rule: str
    remark: str
    entries: dict[Exam, Entry]


class Notes:
    """Footnotes, each said once."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, text: str) -> str:
        """The sign that stands for a text."""
        if text not in self.texts:
            self.texts.append(text)
        return f"({self.texts.index(text) + 1})"

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(f"{self.mark(text)} {text}" for text in self.texts)


Maker = Callable[[Entry, int, Notes], Cell]


def score_table(caption: str, lines: Sequence[Line], every: Sequence[Exam], versus: str) -> Table:
    """Only columns that some line fills.

    Args:
        caption: above the table.
        lines: in their order.
        every: all tasks of the report, which decide how much of their names is said.
        versus: the heading of the differences.
    """
    notes, heads = Notes(), [Column("rule", left=True)]
    rows = [[Cell(line.rule, line.remark)] for line in lines]
    asked = {exam for line in lines for exam in line.entries}
    for exam in sorted(asked, key=lambda exam: exam.order):
        entries = [line.entries.get(exam) for line in lines]
        present = [entry for entry in entries if entry]
        most = max(entry.found.count for entry in present)
        for name, make in _columns(present, versus).items():
            heads.append(Column(name, f"{exam.words(every)}, n {most}"))
            for row, entry in zip(rows, entries, strict=True):
                row.append(make(entry, most, notes) if entry else Cell(NONE))
    return Table(caption, tuple(heads), tuple(map(tuple, rows)), notes.lines)


def _columns(entries: Sequence[Entry], versus: str) -> dict[str, Maker]:
    found: dict[str, Maker] = {"acc %": _accuracy}
    if any(entry.twins_differ for entry in entries):
        found["compat %"] = _compat
    found["NFE"] = _forwards
    if any(entry.pair or entry.refusal for entry in entries):
        found[versus] = _difference
    if any(entry.paper for entry in entries):
        found |= {"paper acc": _paper_accuracy, "paper NFE": _paper_forwards}
    return found


def _accuracy(entry: Entry, most: int, notes: Notes) -> Cell:
    found = entry.found
    fewer = "" if found.count == most else f" n {found.count}"
    return Cell(percent(found.accuracy()), span(found.interval()) + fewer)


def _compat(entry: Entry, most: int, notes: Notes) -> Cell:
    rule = "acc_compat"
    return Cell(percent(entry.found.accuracy(rule)), span(entry.found.interval(rule)))


def _forwards(entry: Entry, most: int, notes: Notes) -> Cell:
    return Cell(number(entry.found.mean("nfe")))


def _difference(entry: Entry, most: int, notes: Notes) -> Cell:
    if entry.refusal:
        return Cell(NONE, notes.mark(f"Not compared: {entry.refusal}."))
    if entry.pair is None:
        return Cell("")
    mark = ""
    if entry.names_baseline and entry.pair.other_knob:
        mark = " " + notes.mark(f"Against {entry.pair.first.trial.rule}, its knob at lam 0.")
    return difference(entry.pair, mark)


def difference(pair: Pair, mark: str = "") -> Cell:
    """In points, with its interval and p; starred where the interval excludes 0."""
    small = f"{points_span(pair.acc.interval)} {p_value(pair.acc.p)}{mark}"
    return Cell(points(pair.acc.difference) + ("*" if pair.tone else ""), small, pair.tone)


def _paper_accuracy(entry: Entry, most: int, notes: Notes) -> Cell:
    if not entry.paper:
        return Cell(NONE)
    first, *others = entry.paper
    but = ", ".join(f"{each.accuracy:.1f} in {each.table}" for each in others)
    return Cell(f"{first.accuracy:.1f}", f"but {but}" if but else "")


def _paper_forwards(entry: Entry, most: int, notes: Notes) -> Cell:
    return Cell(number(next((each.nfe for each in entry.paper if each.nfe is not None), None)))
