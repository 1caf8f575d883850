"""Tables like the paper's: a section for every model and setting, a table for every selection."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from unmask.lab.report.about import whose
from unmask.lab.report.blocks import Block, Section, Text
from unmask.lab.report.findings import Findings, Model
from unmask.lab.report.pairs import pair_of
from unmask.lab.report.panels import Exam, Panel, panels
from unmask.lab.report.paper_columns import SIZES, why_not_the_papers
from unmask.lab.report.rule_columns import Reading, read
from unmask.lab.report.score_table import Entry, Line, score_table
from unmask.lab.summary import Summary, why_not

ALONE = (
    "No trial of this setting suppresses EOS. Over a full window LLaDA fills the tail with EOS "
    "early, and suppressing it can lift the baseline by as much as SWD does; without such trials "
    "a gain here may be no more than that."
)


def scores(findings: Findings) -> Section:
    """All tables."""
    found: list[Block] = []
    for model in findings.models:
        every = panels(findings.summaries, model.weights)
        settings = list(dict.fromkeys(panel.setting for panel in every))
        for setting, group in groupby(every, key=lambda panel: panel.setting):
            title = f"{model.title}: {setting.words(settings)}"
            found.append(Section(title, tuple(_section(findings, model, list(group), every))))
    return Section("Accuracy and forwards", tuple(found))


def _section(
    findings: Findings, model: Model, group: list[Panel], every: list[Panel]
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
        for readings, more in ((main, ""), (swept, ", other values of the knob")):
            if readings:
                lines = _lines(findings, panel, readings, suppressed)
                title = panel.title + more + _tables(lines)
                blocks.append(score_table(title, lines, findings.exams, versus))
    return blocks


def _about_paper(findings: Findings, model: Model, group: list[Panel]) -> str:
    """Whose figures stand beside ours, or why none do."""
    summaries = [each for panel in group for each in panel.summaries]
    text = f"The model is {whose(model)}."
    if model.counterpart is None:
        return text
    beside = [each for each in summaries if findings.paper(each.trial)]
    if not beside:
        found = (why_not_the_papers(each.trial) for each in summaries)
        reason = next((reason for reason in found if reason), "it has none for these rules")
        return f"{text} None of its figures is shown: {reason}."
    text += " Its figures stand beside ours; it scored by rules like those of compat."
    if any(each.count < SIZES[each.trial.task] for each in beside):
        sizes = ", ".join(f"{task} {size}" for task, size in SIZES.items())
        text += f" It used all examples ({sizes}), ours are fewer where n says so."
    return text


def _tables(lines: list[Line]) -> str:
    """Where the paper's figures come from."""
    entries = [entry for line in lines for entry in line.entries.values()]
    found = dict.fromkeys(each.table for entry in entries for each in entry.paper)
    return f" (paper: {', '.join(found)})" if found else ""


def _lines(
    findings: Findings, panel: Panel, readings: list[Reading], suppressed: list[Summary]
) -> list[Line]:
    """A line per rule; then every baseline once more, with EOS suppressed."""
    kept = []
    for reading in readings:
        found = {exam: panel.find(reading.rule, exam) for exam in panel.exams}
        entries = {exam: _entry(findings, each) for exam, each in found.items() if each}
        kept.append(Line(reading.rule, "", entries))
    others = []
    for line in kept:
        if not read(line.rule).lam:
            entries = {
                Exam.of(each.trial): _beside_kept(line, each)
                for each in suppressed
                if read(each.trial.rule).rule == line.rule and Exam.of(each.trial) in line.entries
            }
            if entries:
                others.append(Line(line.rule, "EOS suppressed, against EOS kept", entries))
    return kept + others


def _entry(findings: Findings, found: Summary) -> Entry:
    compared, key = findings.comparisons, found.trial.key
    return Entry(
        found,
        findings.paper(found.trial),
        compared.made.get(key),
        compared.refused.get(key, ""),
        names_baseline=compared.baseline is None,
    )


def _beside_kept(line: Line, found: Summary) -> Entry:
    """EOS suppressed against EOS kept, under the same rule."""
    kept = line.entries[Exam.of(found.trial)].found
    reason = why_not(kept, found)
    return Entry(found, [], None if reason else pair_of(kept, found), reason or "")
