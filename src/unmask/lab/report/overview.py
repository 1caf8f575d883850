"""Plots of all rules of a setting: accuracy against forwards, and what all plots share."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from unmask.lab.figures.plots import PlotCurve, PlotPoint, accuracy_against_forwards
from unmask.lab.report.aup_curves import AupCurve, Contest
from unmask.lab.report.blocks import Picture
from unmask.lab.report.findings import Findings
from unmask.lab.report.pairs import Place, place_of
from unmask.lab.report.panels import Exam, TrialSetting
from unmask.lab.report.rule_parts import OPEN, parts_of, rule_of, versioned
from unmask.lab.report.wording import clean, percent
from unmask.lab.summary import Summary
from unmask.rules.registry import show

MOST = 12  # curves in one plot


@dataclass(frozen=True)
class Plot:
    """A picture, and the function that draws it into files."""

    picture: Picture
    draw: Callable[..., None]


def overviews(findings: Findings) -> list[Plot]:
    """All rules of a setting on one task in one plot; in several if there are many."""
    places: dict[Place, list[Summary]] = {}
    for each in findings.current:
        places.setdefault(place_of(each), []).append(each)
    ranked = sorted(places, key=lambda place: (place[1].order, place[0].weights, place[0].order))
    drawn = []
    for place in ranked:
        if len(places[place]) > 1 and not _alike(findings, places[place]):
            curves = _curves(findings, places[place])
            parts = [curves[start : start + MOST] for start in range(0, len(curves), MOST)]
            title = title_of(findings, places[place][0])
            drawn += [_plot(title, part, nth, len(parts)) for nth, part in enumerate(parts, 1)]
    return drawn


def _plot(title: str, curves: Sequence[PlotCurve], nth: int, count: int) -> Plot:
    which = f", part {nth} of {count}" if count > 1 else ""
    caption = f"All rules: accuracy against forward passes, {title}{which}"
    picture = Picture(f"rules-{slug(title)}", caption, in_words(caption, curves))
    text = "\n".join(map(clean, (title, f"all rules{which}")))
    return Plot(picture, partial(accuracy_against_forwards, curves, text))


def _swept(findings: Findings, place: Place) -> list[AupCurve]:
    return [
        curve
        for contest in findings.contests
        for curve in curves_in(contest)
        if (curve.setting, curve.exam) == place
    ]


def _alike(findings: Findings, members: Sequence[Summary]) -> bool:
    """Whether all rules are in curves that one plot of a swept knob shows."""
    curves = _swept(findings, place_of(members[0]))
    placed = {each.trial.key for curve in curves for each in curve.summaries}
    return placed == {each.trial.key for each in members} and len(set(map(group_of, curves))) == 1


def group_of(curve: AupCurve) -> tuple[TrialSetting, str, str, str]:
    """What the curves of one plot share: setting, score, kind of selection, knob."""
    parts = parts_of(curve.method)
    return curve.setting, parts.score, parts.kind, curve.knob


def _curves(findings: Findings, members: Sequence[Summary]) -> list[PlotCurve]:
    """The curves of swept knobs; the rules in none of them by lam, or as single points."""
    swept = _swept(findings, place_of(members[0]))
    placed = {each.trial.key for curve in swept for each in curve.summaries}
    best = findings.comparisons.references
    curves = [
        PlotCurve(clean(curve.name), points_of(curve), baseline=_holds(curve.summaries, best))
        for curve in swept
    ]
    lams: dict[tuple[str, str, str], list[Summary]] = {}
    for each in sorted(members, key=lambda each: rule_of(each).order):
        if each.trial.key not in placed:
            parts = rule_of(each)
            lams.setdefault(
                (parts.base, parts.variant * bool(parts.lam), parts.version), []
            ).append(each)
    singles = [_by_lam(each, _holds(each, best)) for each in lams.values()]
    return [*curves, *singles]


def _holds(members: Sequence[Summary], references: Collection[str]) -> bool:
    """Whether one of these trials is what others are compared with."""
    return any(each.trial.key in references for each in members)


def _by_lam(members: Sequence[Summary], baseline: bool) -> PlotCurve:
    """One rule at several lam; a single rule is one point."""
    parts = [rule_of(each) for each in members]
    if len(members) == 1:
        return PlotCurve(clean(parts[0].name), (point_of(members[0], ""),), baseline)
    points = tuple(
        point_of(each, f"lam {show(rule.lam)}") for each, rule in zip(members, parts, strict=True)
    )
    name = versioned(f"{parts[0].base}, lam {OPEN}", parts[0].version)
    return PlotCurve(clean(name), points, baseline)


def curves_in(contest: Contest) -> list[AupCurve]:
    """The curves of a contest, each once."""
    return [each.curve for each in contest.scored if each.speed == "nominal"]


def title_of(findings: Findings, summary: Summary) -> str:
    """The task and setting of a trial, with its model if there are several."""
    exam = Exam.of(summary.trial).words(findings.exams)
    text = f"{exam}, {TrialSetting.of(summary.trial).words()}"
    if len(findings.models) > 1:
        text = f"{findings.model_of(summary.trial).title}: {text}"
    return text


def points_of(curve: AupCurve) -> tuple[PlotPoint, ...]:
    """The points of a curve, each with the value of its knob."""
    pairs = zip(curve.summaries, curve.values, strict=True)
    return tuple(point_of(each, value) for each, value in pairs)


def point_of(each: Summary, label: str | None = None) -> PlotPoint:
    """A trial as a point of a curve (default label: the knob of its rule)."""
    knob = parts_of(each.trial.rule).knob if label is None else label
    return PlotPoint(knob, each.mean("nfe"), each.accuracy(), *each.interval())


def in_words(caption: str, curves: Sequence[PlotCurve]) -> str:
    """A text for readers who cannot see the picture."""
    ranges = []
    for curve in curves:
        values = [point.accuracy for point in curve.points]
        ranges.append(f"{curve.label}: {percent(min(values))} to {percent(max(values))}%")
    return f"{caption}. {'; '.join(ranges)}. The tables have every figure.".replace("\n", " ")


def slug(text: str) -> str:
    """A text for the name of a file."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40] or "task"
