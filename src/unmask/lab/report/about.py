"""The section on what was run: models, tasks, machines, incomplete trials."""

from __future__ import annotations

from unmask.lab.report.blocks import Block, Items, ReportTable, Section, Text, cells, columns
from unmask.lab.report.findings import Findings, ReportedModel
from unmask.lab.report.gather import IncompleteTrial
from unmask.lab.report.panels import Exam, TrialSetting
from unmask.lab.report.rule_parts import rule_of
from unmask.lab.report.wording import counted, duration, listed, percent
from unmask.rules.plugins import import_hint

READING = (
    "acc is the share of examples solved, in percent, by this project's scorers. compat scores the "
    "same text by the rules of the paper's protocol. [ ] is Wilson's 95% interval.",
    "NFE is the mean number of forward passes per example over the whole window. NFE to EOS counts "
    "the forward passes until everything before the first end token is fixed.",
    "Tokens per forward are nominal (all positions / NFE) or effective (tokens before the first "
    "end token / NFE to EOS). Each is the mean over examples.",
    "EOS is the share of end tokens among the written tokens. Cut off is the share of examples "
    "that did not end within their length.",
    "A difference is paired over the same examples, in points, with its 95% bootstrap interval "
    "and the exact p of McNemar's test.",
)
WHOSE = {
    "embedded": "unmask's own small model; the paper has no figures for it",
    "paper": "the paper's {}, to judge by its name",
    "other": "not a model of the paper",
}
FACTS = ("device", "system", "python", "torch", "unmask", "commit", "threads", "batch_size")


def about(findings: Findings) -> Section:
    """Models, tasks, machines, total time, incomplete trials, and what the figures mean."""
    blocks: list[Block] = [
        Text(_in_one_sentence(findings)),
        _models(findings),
        _exams(findings),
        _machines(findings),
    ]
    incomplete = [
        findings.whose(each.trial) + _progress(each, findings.name(each.trial))
        for each in findings.results.incomplete
    ]
    if incomplete:
        note = Text("The report uses the examples that they have so far.")
        blocks.append(Section("Incomplete trials", (note, Items(tuple(incomplete)))))
    blocks += [*_older(findings), *_unknown(findings)]
    compared = findings.comparisons
    stars = (f"A star means: {compared.stars}.",) if compared.count else ()
    blocks.append(Section("How to read the figures", (Items((*READING, *stars)),)))
    return Section("What was run", tuple(blocks))


def _older(findings: Findings) -> list[Block]:
    """The versions of rules that the tables do not show."""
    older = [
        f"{findings.whose(each.trial)}{each.trial.task}: {findings.name(each.trial)}, "
        f"{findings.where(each.trial)}: n {each.count}, {percent(each.accuracy())}%"
        for each in findings.summaries
        if each.trial.key not in findings.shown
    ]
    if not older:
        return []
    note = Text(
        "The parts of these rules were edited between runs. The tables and plots show the newest "
        "complete version of a rule; these are in 'Every trial', and --baseline takes their names."
    )
    return [Section("Older versions", (note, Items(tuple(older))))]


def _unknown(findings: Findings) -> list[Block]:
    """The rules that cannot be parsed here, and how to bring their parts."""
    rules = dict.fromkeys(
        findings.name(each.trial) for each in findings.summaries if rule_of(each).problem
    )
    if not rules:
        return []
    note = Text(
        "These rules have parts that are not known here. They are read from their texts alone"
        f"{import_hint(findings.results.origins) or '; --import FILE brings their parts'}."
    )
    return [Section("Rules of unknown parts", (note, Items(tuple(rules))))]


def _in_one_sentence(findings: Findings) -> str:
    summaries = findings.summaries
    total = sum(sum(each.values("seconds_total")) for each in summaries)
    decided = sum(sum(each.values("seconds_decision")) for each in summaries)
    share = f", {percent(decided / total)}% of it in the decision" if total else ""
    tasks = listed(dict.fromkeys(exam.task for exam in findings.exams))
    return (
        f"{counted(len(summaries), 'trial')} with "
        f"{counted(sum(each.count for each in summaries), 'graded example')} of {tasks}. Decoding "
        f"took {duration(total)}, summed over examples and workers{share}."
    )


def whose(model: ReportedModel) -> str:
    """Whose model it is, and whether the paper has figures for it."""
    if "embedded" in model.names:
        return WHOSE["embedded"]
    if model.counterpart is not None:
        return WHOSE["paper"].format(model.counterpart)
    return WHOSE["other"]


def _models(findings: Findings) -> ReportTable:
    rows = []
    for model in findings.models:
        trials = [each for each in findings.results.trials if each.weights == model.weights]
        rows.append(
            cells(
                listed(model.names),
                model.weights,
                listed(sorted({each.dtype for each in trials})),
                str(len(trials)),
                whose(model),
            )
        )
    return ReportTable(
        "Models",
        columns("model", "weights", "dtype", "trials", "whose", left=("weights", "dtype", "whose")),
        tuple(rows),
    )


def _exams(findings: Findings) -> ReportTable:
    rows = []
    for exam in findings.exams:
        members = [each for each in findings.summaries if Exam.of(each.trial) == exam]
        settings = {TrialSetting.of(each.trial) for each in members}
        windows = sorted({each.block or 0 for each in settings})
        counts = sorted({each.count for each in members})
        rows.append(
            cells(
                exam.task,
                str(exam.version),
                exam.preset,
                str(exam.length),
                str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}",
                listed(block or "full" for block in windows),
                listed(sorted({each.eos for each in settings})),
                "; ".join(sorted({row.grader or "" for each in members for row in each.rows})),
            )
        )
    names = ("task", "version", "preset", "tokens", "examples", "window", "EOS", "graded by")
    left = ("preset", "window", "EOS", "graded by")
    return ReportTable("Tasks", columns(*names, left=left), tuple(rows))


def _machines(findings: Findings) -> ReportTable:
    rows = []
    for machine in findings.results.machines:
        values = (machine.environment.get(name) for name in FACTS)
        facts = ("none" if value is None else str(value) for value in values)
        rows.append(cells(machine.name, *facts, str(len(machine.workers)), str(machine.examples)))
    names = ("machine", *(name.replace("_", " ") for name in FACTS), "workers", "examples")
    return ReportTable(
        "Machines",
        columns(*names, left=("device", "system", "python", "torch", "unmask", "commit")),
        tuple(rows),
        ("A + behind a commit means local changes; none means an installed package.",),
    )


def _progress(each: IncompleteTrial, name: str) -> str:
    trial = each.trial
    text = f"{trial.task}: {name}, {TrialSetting.of(trial).words()}: "
    text += f"{each.graded} of {each.most} examples"
    left = each.decoded - each.graded
    text += f", and {counted(left, 'answer')} not yet graded" if left else ""
    return text + (f", {each.twice} of them in a second wording" if each.twice else "")
