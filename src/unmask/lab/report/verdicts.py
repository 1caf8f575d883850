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
from unmask.lab.report.pairs import TrialPair
from unmask.lab.report.panels import Exam
from unmask.lab.report.wording import counted, p_value, percent, points, points_span

LEVEL = 0.05
CAPTIONS: dict[Tone, str] = {"gain": "Gains, largest first", "loss": "Losses, largest first"}


def verdicts(findings: Findings) -> Section:
    """The gains, the losses, and how many of them chance explains."""
    compared = findings.comparisons
    who = "SWD" if compared.baseline is None else "another rule"
    title = f"Where {who} helps and where it loses"
    if not compared.made:
        reason = Text(f"Nothing could be compared with {compared.against}.")
        return Section(title, (reason, *_refused(findings)))
    blocks: list[Block] = [Text(_chance(findings))]
    tones: tuple[tuple[Tone, str], ...] = (("gain", "helps"), ("loss", "loses"))
    for tone, verb in tones:
        pairs = compared.toned(tone)
        heading = f"Where {who} {verb} ({len(pairs)} of {len(compared.made)})"
        none = Text(f"Nowhere: no interval lies {'above' if tone == 'gain' else 'below'} 0.")
        table = _table(findings, pairs, CAPTIONS[tone]) if pairs else none
        blocks.append(Section(heading, (table,)))
    return Section(title, (*blocks, *_refused(findings)))


def summary_of(findings: Findings) -> str:
    """The outcome in one sentence."""
    compared = findings.comparisons
    counts = Counter(pair.tone for pair in compared.made.values())
    others = sum(pair.other_knob for pair in compared.made.values())
    tau = f" ({others} of them at another tau)" if others and compared.baseline is None else ""
    return (
        f"{counted(len(compared.made), 'comparison')} with {compared.against}{tau}, in the same "
        f"setting and over the same examples: accuracy is higher in {counts['gain']}, lower in "
        f"{counts['loss']}, and undecided in {counts['']} (the 95% interval of the paired "
        "difference lies above 0, below 0, or contains 0)."
    )


def _chance(findings: Findings) -> str:
    pairs = findings.comparisons.made.values()
    left = Counter(pair.tone for pair in pairs if pair.holm < LEVEL)
    return (
        "The intervals and the stars are not corrected for the number of comparisons. Without any "
        f"effect, about {LEVEL * len(pairs):.2g} of {len(pairs)} intervals would exclude 0 by "
        "chance. Holm's correction is valid even if the comparisons depend on each other; after "
        f"it, {left['gain']} of the gains and {left['loss']} of the losses keep p < {LEVEL:g}. If "
        "few examples differ, the bootstrap interval is too narrow: use p then."
    )


def _table(findings: Findings, pairs: list[TrialPair], caption: str) -> ReportTable:
    rows = tuple(
        (
            TableCell(pair.second.trial.rule, _where(findings, pair)),
            TableCell(f"{points(pair.acc.difference)}*", points_span(pair.acc.interval), pair.tone),
            TableCell(f"{percent(pair.first.accuracy())} → {percent(pair.second.accuracy())}"),
            TableCell(p_value(pair.acc.p), f"Holm {p_value(pair.holm)[2:]}"),
            TableCell(f"{pair.acc.only_second} : {pair.acc.only_first}"),
            TableCell(f"{pair.first.mean('nfe'):.1f} → {pair.second.mean('nfe'):.1f}"),
        )
        for pair in pairs
    )
    names = ("rule", "difference", "acc %", "McNemar", "gained : lost", "NFE")
    return ReportTable(caption, columns(*names), rows)


def _where(findings: Findings, pair: TrialPair) -> str:
    """Task and setting, and the baseline if it is not the same rule at lam 0."""
    trial = pair.second.trial
    text = f"{Exam.of(trial).words(findings.exams)}, {findings.where(trial)}"
    text = findings.whose(trial) + text
    if pair.other_knob or findings.comparisons.baseline is not None:
        text += f", against {pair.first.trial.rule}"
    return text


def _refused(findings: Findings) -> tuple[Block, ...]:
    """A list of the trials that were not compared, each with its reason."""
    if not findings.comparisons.refused:
        return ()
    trials = {trial.key: trial for trial in findings.results.trials}
    items = []
    for key, reason in findings.comparisons.refused.items():
        trial = trials[key]
        place = f"{findings.whose(trial)}{trial.task}"
        items.append(f"{place}: {trial.rule}, {findings.where(trial)}: {reason}")
    return (Section("Not compared", (Items(tuple(items)),)),)
