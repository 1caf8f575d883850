"""Tables like the paper's: a section for each model and setting, a table for each selection."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from unmask.lab.report.about import whose
from unmask.lab.report.blocks import Block, Section, Text
from unmask.lab.report.findings import Findings, ReportedModel
from unmask.lab.report.pairs import pair_of
from unmask.lab.report.panels import Exam, TrialPanel, panels
from unmask.lab.report.paper_columns import SIZES, why_not_the_papers
from unmask.lab.report.rule_parts import RuleParts, parts_of
from unmask.lab.report.score_table import RuleLine, TaskEntry, score_table
from unmask.lab.summary import Summary, why_not

ALONE = (
    "No trial of this setting suppresses EOS. With a full window LLaDA writes EOS into the tail "
    "early, and suppressing EOS can raise the baseline as much as SWD does. Without such trials "
    "a gain in this section may have the same cause."
)


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
