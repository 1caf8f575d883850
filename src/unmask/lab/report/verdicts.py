"""The section on gains and losses: two tables of the same form."""

from __future__ import annotations

from collections import Counter

from unmask.lab.report.blocks import (
    Block,
    Items,
    ReportTable,
    Section,
    TableCell,
    Text,
    Tone,
    columns,
)
from unmask.lab.report.findings import Findings
from unmask.lab.report.pairs import LAM_0, TrialPair
from unmask.lab.report.panels import Exam
from unmask.lab.report.rule_parts import rule_of
from unmask.lab.report.wording import counted, p_value, percent, points, points_span
from unmask.lab.stats import LEVEL

CHOSEN = (
    "A rule that has no partner with or without SWD is compared with the best rule of its setting. "
    "That rule was chosen by its accuracy on the same examples, so a part of its lead is chance. "
    "`unmask report --baseline RULE` compares with another one."
)
CAPTIONS: dict[Tone, str] = {"gain": "Gains, largest first", "loss": "Losses, largest first"}


def verdicts(findings: Findings) -> Section:
    """The gains, the losses, and how many of them chance explains."""
    compared = findings.comparisons
    who = "SWD" if compared.about_swd else "another rule"
    title = f"Where {who} helps and where it loses"
    if not compared.made:
        reason = Text(f"Nothing could be compared with {compared.against}.")
        return Section(title, (reason, *_refused(findings)))
    blocks: list[Block] = [*_references(findings), Text(_chance(findings))]
    tones: tuple[tuple[Tone, str], ...] = (("gain", "helps"), ("loss", "loses"))
    for tone, verb in tones:
        pairs = compared.toned(tone)
        heading = f"Where {who} {verb} ({len(pairs)} of {len(compared.made)})"
        none = Text("Nowhere: no comparison has a star.")
        table = _table(findings, pairs, CAPTIONS[tone]) if pairs else none
        blocks.append(Section(heading, (table,)))
    return Section(title, (*blocks, *_refused(findings)))


def summary_of(findings: Findings) -> str:
    """The outcome in one sentence."""
    compared = findings.comparisons
    counts = Counter(pair.tone for pair in compared.made.values())
    others = sum(pair.other_knob for pair in compared.made.values())
    left = len(compared.refused)
    tau = f" ({others} of them at another tau)" if others and compared.baseline is None else ""
    return (
        f"{counted(len(compared.made), 'comparison')} with {compared.against}{tau}, in the same "
        f"setting and over the same examples: accuracy is higher in {counts['gain']}, lower in "
        f"{counts['loss']}, and undecided in {counts['']}. It is decided where "
        f"{compared.stars}." + (f" {counted(left, 'trial')} could not be compared." if left else "")
    )


def _references(findings: Findings) -> list[Block]:
    """The rule that each setting's rules are compared with, where the baseline is not lam 0."""
    compared = findings.comparisons
    told = dict.fromkeys(
        f"{_place(findings, pair)}: rules are compared with {rule_of(pair.first).name}, "
        f"{pair.against} in the same setting."
        for pair in compared.made.values()
        if pair.with_best
    )
    if not told:
        return []
    return [Text(CHOSEN), Items(tuple(told))]


def _chance(findings: Findings) -> str:
    compared = findings.comparisons
    pairs = [*compared.made.values(), *compared.eos.values()]
    apart = sum(pair.acc.interval.low > 0 or pair.acc.interval.high < 0 for pair in pairs)
    return (
        f"A star means: {compared.stars}. Holm's correction is valid even if the comparisons "
        "depend on each other, as those with a common baseline do. The intervals are not "
        f"corrected: {apart} of {len(pairs)} exclude 0; without any effect, about "
        f"{LEVEL * len(pairs):.2g} would by chance. If few examples differ, the bootstrap interval "
        "is too narrow."
    )


def _table(findings: Findings, pairs: list[TrialPair], caption: str) -> ReportTable:
    rows = tuple(
        (
            TableCell(rule_of(pair.second).name, _where(findings, pair)),
            TableCell(str(pair.second.count)),
            TableCell(f"{points(pair.acc.difference)}*", points_span(pair.acc.interval), pair.tone),
            TableCell(f"{percent(pair.first.accuracy())} → {percent(pair.second.accuracy())}"),
            TableCell(p_value(pair.acc.p), f"Holm {p_value(pair.holm)[2:]}"),
            TableCell(f"{pair.acc.only_second} : {pair.acc.only_first}"),
            TableCell(f"{pair.first.mean('nfe'):.1f} → {pair.second.mean('nfe'):.1f}"),
        )
        for pair in pairs
    )
    names = ("rule", "n", "difference", "acc %", "McNemar", "gained : lost", "NFE")
    return ReportTable(caption, columns(*names), rows)


def _where(findings: Findings, pair: TrialPair) -> str:
    """Task and setting, and the baseline if it is not the same rule at lam 0."""
    named = pair.against != LAM_0
    return _place(findings, pair) + (f", against {rule_of(pair.first).name}" if named else "")


def _place(findings: Findings, pair: TrialPair) -> str:
    trial = pair.second.trial
    text = f"{Exam.of(trial).words(findings.exams)}, {findings.where(trial)}"
    return findings.whose(trial) + text


def _refused(findings: Findings) -> tuple[Block, ...]:
    """A list of the trials that were not compared, each with its reason."""
    if not findings.comparisons.refused:
        return ()
    trials = {trial.key: trial for trial in findings.results.trials}
    items = []
    for key, reason in findings.comparisons.refused.items():
        trial = trials[key]
        place = f"{findings.whose(trial)}{trial.task}"
        items.append(f"{place}: {findings.name(trial)}, {findings.where(trial)}: {reason}")
    return (Section("Not compared", (Items(tuple(items)),)),)
