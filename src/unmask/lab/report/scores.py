"""Tables like the paper's: a section for each model and setting, a table for each selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from unmask.lab.paper import Published
from unmask.lab.report.about import whose
from unmask.lab.report.blocks import Block, Column, ReportTable, Section, TableCell, Text
from unmask.lab.report.findings import Findings, ReportedModel
from unmask.lab.report.pairs import TrialPair, pair_of
from unmask.lab.report.panels import Exam, TrialPanel, panels
from unmask.lab.report.paper_columns import SIZES, why_not_the_papers
from unmask.lab.report.rule_parts import RuleParts, parts_of
from unmask.lab.report.wording import NONE, number, p_value, percent, points, points_span, span
from unmask.lab.summary import Summary, why_not

ALONE = (
    "No trial of this setting suppresses EOS. With a full window LLaDA writes EOS into the tail "
    "early, and suppressing EOS can raise the baseline as much as SWD does. Without such trials "
    "a gain in this section may have the same cause."
)


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


def scores(findings: Findings) -> Section:
    """All tables of accuracies."""
    sections: list[Block] = []
    for model in findings.models:
        every = panels(findings.summaries, model.weights)
        settings = list(dict.fromkeys(panel.setting for panel in every))
        for setting, group in groupby(every, key=lambda panel: panel.setting):
            title = f"{model.title}: {setting.words(settings)}"
            sections.append(Section(title, tuple(_section(findings, model, list(group), every))))
    return Section("Accuracy and forwards", tuple(sections))


def _section(
    findings: Findings, model: ReportedModel, group: list[TrialPanel], every: list[TrialPanel]
) -> list[Block]:
    setting = group[0].setting
    blocks: list[Block] = [Text(_about_paper(findings, model, group))]
    suppressed: list[Summary] = []
    if setting.block is None and setting.eos == "keep":
        wanted = replace(setting, eos="suppress")
        suppressed = [each for p in every if p.setting == wanted for each in p.summaries]
        if not suppressed:
            blocks.append(Text(ALONE))
    versus = "vs lam 0" if findings.comparisons.baseline is None else "vs baseline"
    for panel in group:
        main, swept = panel.split()
        for rules, more in ((main, ""), (swept, ", other values of the knob")):
            if rules:
                lines = _lines(findings, panel, rules, suppressed)
                title = panel.title + more + _tables(lines)
                blocks.append(score_table(title, lines, findings.exams, versus))
    return blocks


def _about_paper(findings: Findings, model: ReportedModel, group: list[TrialPanel]) -> str:
    """Whether the tables show the paper's figures, and if not, why."""
    summaries = [each for panel in group for each in panel.summaries]
    text = f"The model is {whose(model)}."
    if model.counterpart is None:
        return text
    beside = [each for each in summaries if findings.paper(each.trial)]
    if not beside:
        reasons = (why_not_the_papers(each.trial) for each in summaries)
        reason = next((each for each in reasons if each), "it has none for these rules")
        return f"{text} The paper's figures are not shown: {reason}."
    text += " The paper's figures stand beside ours; it scored by rules like those of compat."
    if any(each.count < SIZES[each.trial.task] for each in beside):
        sizes = ", ".join(f"{task} {size}" for task, size in SIZES.items())
        text += f" The paper used all examples ({sizes}); ours are fewer where n says so."
    return text


def _tables(lines: list[RuleLine]) -> str:
    """The tables of the paper that the figures come from."""
    entries = [entry for line in lines for entry in line.entries.values()]
    tables = dict.fromkeys(each.table for entry in entries for each in entry.paper)
    return f" (paper: {', '.join(tables)})" if tables else ""


def _lines(
    findings: Findings, panel: TrialPanel, rules: list[RuleParts], suppressed: list[Summary]
) -> list[RuleLine]:
    """A line for each rule, then each baseline once more with EOS suppressed."""
    kept = []
    for parts in rules:
        trials = {exam: panel.find(parts.rule, exam) for exam in panel.exams}
        entries = {exam: _entry(findings, each) for exam, each in trials.items() if each}
        kept.append(RuleLine(parts.rule, "", entries))
    others = []
    for line in kept:
        if not parts_of(line.rule).lam:
            entries = {
                Exam.of(each.trial): _beside_kept(line, each)
                for each in suppressed
                if parts_of(each.trial.rule).rule == line.rule
                and Exam.of(each.trial) in line.entries
            }
            if entries:
                others.append(
                    RuleLine(line.rule, "EOS suppressed, compared with EOS kept", entries)
                )
    return kept + others


def _entry(findings: Findings, summary: Summary) -> TaskEntry:
    compared, key = findings.comparisons, summary.trial.key
    return TaskEntry(
        summary,
        findings.paper(summary.trial),
        compared.made.get(key),
        compared.refused.get(key, ""),
        names_baseline=compared.baseline is None,
    )


def _beside_kept(line: RuleLine, summary: Summary) -> TaskEntry:
    """A trial with EOS suppressed, compared with the same rule with EOS kept."""
    kept = line.entries[Exam.of(summary.trial)].summary
    reason = why_not(kept, summary)
    return TaskEntry(summary, [], None if reason else pair_of(kept, summary), reason or "")


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
