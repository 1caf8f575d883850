"""Accuracy under parallelism, where a knob was swept."""

from __future__ import annotations

from unmask.lab.report.aup_curves import Contest, Scored
from unmask.lab.report.blocks import Block, Cell, Column, Items, Section, Table, Text
from unmask.lab.report.findings import Findings
from unmask.lab.report.panels import Setting
from unmask.lab.report.wording import NONE, number

MEANING = (
    "AUP (d3LLM) is the area under accuracy over tokens per forward, in which accuracy below the "
    "best one weighs less: y min(exp(-3 (1 - y / y_max)), 1). Points more than 5 points below the "
    "slowest one are dropped, which is coarser than the error of a small test set. y_max is the "
    "best accuracy of all curves in the table, so figures of two tables, or of this table and the "
    "leaderboard's, cannot be compared. The leaderboard counts effective tokens; nominal ones "
    "count the tail of EOS too."
)
PLAIN = (
    "Beside it, plainer: accuracy at 2 and 4 tokens per forward on the line between two points, "
    "and the greatest rate at which at most one point of accuracy is lost to the slowest setting"
    " (rate at -1)."
)
WORDS = ("knobs kept", "dropped")
NAMES = ("AUP", "knobs kept", "dropped", "acc at 2", "at 4", "rate at -1")


def speed(findings: Findings) -> Section:
    """A table for each model and task with a sweep."""
    title = "Accuracy under parallelism"
    if not findings.contests:
        return Section(
            title,
            (Text("No knob of a selection was swept: AUP needs trials that differ in it alone."),),
        )
    blocks: list[Block] = [Text(MEANING), Text(PLAIN)]
    for contest in findings.contests:
        blocks.append(_table(findings, contest))
        if contest.left_out:
            blocks.append(Text("Left out of these curves:"))
            blocks.append(Items(contest.left_out))
    return Section(title, tuple(blocks))


def _table(findings: Findings, contest: Contest) -> Table:
    others = findings.settings[contest.weights]
    by_curve: dict[tuple[Setting, str], list[Scored]] = {}
    for scored in contest.scored:
        by_curve.setdefault((scored.curve.setting, scored.curve.method), []).append(scored)
    rows = tuple(
        (Cell(method, setting.words(others)), *(cell for each in members for cell in _cells(each)))
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
    return Table(
        f"{model}: {contest.exam.words(findings.exams)}",
        (Column("method", left=True), *heads),
        rows,
        (
            f"y_max {number(100 * best.accuracy())} is the accuracy of {best.trial.rule}, "
            f"{findings.where(best.trial)}.",
        ),
    )


def _cells(each: Scored) -> list[Cell]:
    interval = each.interval
    bounds = NONE if interval is None else f"[{interval.low:.1f}, {interval.high:.1f}]"
    return [
        Cell(number(each.area.value), bounds),
        Cell(" ".join(point.name for point in each.area.kept)),
        Cell(" ".join(point.name for point in each.area.dropped) or NONE),
        Cell(number(each.accuracy_at_2)),
        Cell(number(each.accuracy_at_4)),
        Cell(number(each.rate_within_1, 2)),
    ]
