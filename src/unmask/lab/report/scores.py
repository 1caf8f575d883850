"""Tables like the paper's: a section for each model and setting, a table for each selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from unmask.decoding.options import EOS_WORDS
from unmask.lab.paper import Published
from unmask.lab.report.about import whose
from unmask.lab.report.averages import Average, average_columns, average_of, in_tables
from unmask.lab.report.blocks import Block, Column, Notes, ReportTable, Section, TableCell, Text
from unmask.lab.report.findings import Findings, ReportedModel
from unmask.lab.report.pairs import BASELINE_EOS, LAM_0, NO_RIVAL, TrialPair
from unmask.lab.report.panels import Exam, TrialPanel, panels
from unmask.lab.report.paper_columns import SIZES, readings, why_not_the_papers
from unmask.lab.report.rule_parts import RuleParts, rule_of
from unmask.lab.report.wording import NONE, number, p_value, percent, points, points_span, span
from unmask.lab.summary import Summary

ALONE = (
    "No trial of this setting {}. With a full window LLaDA writes EOS into the tail early, and "
    "suppressing EOS or ranking it last can raise the baseline as much as SWD does. Without such "
    "trials a gain in this section may have the same cause."
)
MISSING = {"suppress": "suppresses EOS", "last": "ranks EOS last"}


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
    average: Average | None = None


def scores(findings: Findings) -> Section:
    """All tables of accuracies."""
    sections: list[Block] = []
    for model in findings.models:
        every = panels(findings.current, model.weights)
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
    policies: dict[str, list[Summary]] = {}
    if setting.block is None and setting.eos == "keep":
        for eos in BASELINE_EOS:
            wanted = replace(setting, eos=eos)
            policies[eos] = [each for p in every if p.setting == wanted for each in p.summaries]
        missing = [MISSING[eos] for eos, trials in policies.items() if not trials]
        if missing:
            blocks.append(Text(ALONE.format(" or ".join(missing))))
    versus = "vs lam 0" if findings.comparisons.about_swd else "vs baseline"
    words = TableWords(findings.exams, versus, findings.comparisons.stars)
    for panel in group:
        main, swept = panel.split()
        for rules, more in ((main, ""), (swept, ", other values of the knob")):
            if rules:
                lines = _lines(findings, panel, rules, policies)
                title = panel.title + more + _tables(lines)
                blocks.append(score_table(title, lines, words))
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
    findings: Findings,
    panel: TrialPanel,
    rules: list[RuleParts],
    policies: dict[str, list[Summary]],
) -> list[RuleLine]:
    """A line for each rule, then each baseline once more under every other EOS policy."""
    kept = []
    for parts in rules:
        trials = {exam: panel.find(parts.name, exam) for exam in panel.exams}
        entries = {exam: _entry(findings, each) for exam, each in trials.items() if each}
        kept.append(RuleLine(parts.name, "", entries, _average(findings, entries)))
    others = []
    for eos, repeated in policies.items():
        for line in kept:
            entries = {
                Exam.of(each.trial): _beside_kept(findings, each)
                for each in repeated
                if rule_of(each).name == line.rule
                and Exam.of(each.trial) in line.entries
                and not rule_of(each).lam
            }
            if entries:
                remark = f"{EOS_WORDS[eos]}, compared with EOS kept"
                others.append(RuleLine(line.rule, remark, entries, _average(findings, entries)))
    return kept + others


def _average(findings: Findings, entries: dict[Exam, TaskEntry]) -> Average | None:
    return average_of(findings, [entry.summary for entry in entries.values()])


def _entry(findings: Findings, summary: Summary) -> TaskEntry:
    compared, key = findings.comparisons, summary.trial.key
    refusal = compared.refused.get(key, "")
    return TaskEntry(
        summary,
        findings.paper(summary.trial),
        compared.made.get(key),
        "" if refusal == NO_RIVAL else refusal,
        names_baseline=compared.baseline is None,
    )


def _beside_kept(findings: Findings, summary: Summary) -> TaskEntry:
    """A trial under another EOS policy, compared with the same rule with EOS kept."""
    compared, key = findings.comparisons, summary.trial.key
    return TaskEntry(summary, [], compared.eos.get(key), compared.eos_refused.get(key, ""))


Maker = Callable[[TaskEntry, int, Notes], TableCell]


@dataclass(frozen=True)
class TableWords:
    """Words that the tables of a report share."""

    exams: Sequence[Exam]  # of the report; a heading says what tells its exam apart from them
    versus: str  # the heading of the differences
    stars: str  # what a star means


def score_table(caption: str, lines: Sequence[RuleLine], words: TableWords) -> ReportTable:
    """A table with those columns that at least one line fills."""
    notes, heads = Notes(), [Column("rule", left=True)]
    rows = [[TableCell(line.rule, line.remark)] for line in lines]
    asked = {exam for line in lines for exam in line.entries}
    for exam in sorted(asked, key=lambda exam: exam.order):
        entries = [line.entries.get(exam) for line in lines]
        present = [entry for entry in entries if entry]
        most = max(entry.summary.count for entry in present)
        for name, make in _columns(present, words.versus).items():
            heads.append(Column(name, f"{exam.words(words.exams)}, n {most}"))
            for row, entry in zip(rows, entries, strict=True):
                row.append(make(entry, most, notes) if entry else TableCell(NONE))
    for column, cells in average_columns([line.average for line in lines], notes):
        heads.append(column)
        for row, cell in zip(rows, cells, strict=True):
            row.append(cell)
    compared = any(entry.pair for line in lines for entry in line.entries.values())
    stars = (f"* {words.stars}. The intervals are not corrected.",) if compared else ()
    return ReportTable(caption, tuple(heads), tuple(map(tuple, rows)), (*notes.lines, *stars))


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
    if entry.names_baseline and entry.pair.against != LAM_0:
        pair = entry.pair
        mark = " " + notes.mark(f"Compared with {rule_of(pair.first).name}, {pair.against}.")
    return difference(entry.pair, mark)


def difference(pair: TrialPair, mark: str = "") -> TableCell:
    """A difference in points with its interval and p, and its star."""
    small = f"{points_span(pair.acc.interval)} {p_value(pair.acc.p)}{mark}"
    return TableCell(points(pair.acc.difference) + ("*" if pair.tone else ""), small, pair.tone)


def _paper_accuracy(entry: TaskEntry, most: int, notes: Notes) -> TableCell:
    if not entry.paper:
        return TableCell(NONE)
    cell = in_tables([(each.table, each.accuracy) for each in entry.paper])
    told = [*readings(entry.summary.trial.rule), *(each.remark for each in entry.paper)]
    marks = [notes.mark(text) for text in told if text]
    return replace(cell, small=" ".join([cell.small, *marks]).strip())


def _paper_forwards(entry: TaskEntry, most: int, notes: Notes) -> TableCell:
    cell = in_tables([(each.table, each.nfe) for each in entry.paper if each.nfe is not None])
    marks = [notes.mark(each.misprint) for each in entry.paper if each.misprint]
    return replace(cell, small=" ".join([cell.small, *marks]).strip())
