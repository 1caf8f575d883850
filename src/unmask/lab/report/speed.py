"""The section on accuracy under parallelism (AUP) of swept knobs."""

from __future__ import annotations

from unmask.lab.report.aup_curves import Contest, Scored
from unmask.lab.report.blocks import Block, Column, Items, ReportTable, Section, TableCell, Text
from unmask.lab.report.findings import Findings
from unmask.lab.report.panels import TrialSetting
from unmask.lab.report.wording import NONE, number

MEANING = (
    "AUP (d3LLM) is the area under the curve of accuracy over tokens per forward. An accuracy y "
    "below the best one has less weight: y min(exp(-3 (1 - y / y_max)), 1). A setting that is "
    "more than 5 points below the slowest one is dropped; with few examples that may be chance. "
    "y_max is the best accuracy of all curves in the table, so an AUP cannot be compared with one "
    "of another table or of the leaderboard. The leaderboard counts effective tokens; nominal "
    "tokens include the tail of EOS."
)
PLAIN = (
    "Three plainer figures: the accuracy at 2 and at 4 tokens per forward, interpolated between "
    "two settings, and the highest rate that loses at most one point of accuracy against the "
    "slowest setting (rate at -1)."
)
WORDS = ("knobs kept", "dropped")
NAMES = ("AUP", "knobs kept", "dropped", "acc at 2", "at 4", "rate at -1")


def speed(findings: Findings) -> Section:
    """An AUP table for each model and task with a swept knob."""
    title = "Accuracy under parallelism"
    if not findings.contests:
        reason = "No knob but lam was swept. AUP needs trials that differ only in one knob."
        return Section(title, (Text(reason),))
    blocks: list[Block] = [Text(MEANING), Text(PLAIN)]
    for contest in findings.contests:
        blocks.append(_table(findings, contest))
        if contest.left_out:
            blocks.append(Text("These trials are not part of the curves:"))
            blocks.append(Items(contest.left_out))
    return Section(title, tuple(blocks))


def _table(findings: Findings, contest: Contest) -> ReportTable:
    others = findings.settings[contest.weights]
    by_curve: dict[tuple[TrialSetting, str], list[Scored]] = {}
    for scored in contest.scored:
        by_curve.setdefault((scored.curve.setting, scored.curve.name), []).append(scored)
    rows = tuple(
        (
            TableCell(method, f"{setting.words(others)}, knob {members[0].curve.knob}"),
            *(cell for each in members for cell in _cells(each)),
        )
        for (setting, method), members in by_curve.items()
    )
    groups = [scored.speed for scored in next(iter(by_curve.values()))]
    heads = [
        Column(name, f"{speed} tokens per forward", left=name in WORDS)
        for speed in groups
        for name in NAMES
    ]
    best = contest.scored[0].best_from
    model = findings.model_of(best.trial).title
    return ReportTable(
        f"{model}: {contest.exam.words(findings.exams)}, n {best.count}",
        (Column("method", left=True), *heads),
        rows,
        (
            f"y_max {number(100 * best.accuracy())} is the accuracy of "
            f"{findings.name(best.trial)}, {findings.where(best.trial)}.",
        ),
    )


def _cells(each: Scored) -> list[TableCell]:
    interval = each.interval
    bounds = NONE if interval is None else f"[{interval.low:.1f}, {interval.high:.1f}]"
    return [
        TableCell(number(each.area.value), bounds),
        TableCell(" ".join(point.name for point in each.area.kept)),
        TableCell(" ".join(point.name for point in each.area.dropped) or NONE),
        TableCell(number(each.accuracy_at_2)),
        TableCell(number(each.accuracy_at_4)),
        TableCell(number(each.rate_within_1, 2)),
    ]
