"""Which plots a report has: speed over a swept knob, sensitivity to lam, bars by selection."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unmask.lab.figures.panels import Facet, accuracy_bars, accuracy_over_knob
from unmask.lab.figures.plots import Curve, Point, accuracy_against_forwards
from unmask.lab.report.blocks import Picture
from unmask.lab.report.findings import Findings
from unmask.lab.report.panels import Panel, Setting, exams_of, panels, usual_knobs
from unmask.lab.report.rule_columns import SCORES, Reading, read, sortable
from unmask.lab.report.wording import clean, percent
from unmask.lab.summary import Summary
from unmask.rules.registry import kind_named, show

LEAST_LAMS = 3  # two are a difference, which the tables show better


@dataclass(frozen=True)
class Plot:
    """A picture, and how it is drawn into files."""

    picture: Picture
    draw: Callable[..., None]


def plots(findings: Findings) -> list[Plot]:
    """All of them, in the order of the report; each is numbered, so names are never taken twice."""
    found = _speeds(findings)
    for model in findings.models:
        every = panels(findings.summaries, model.weights)
        settings = list(dict.fromkeys(panel.setting for panel in every))
        for setting in settings:
            members = [panel for panel in every if panel.setting == setting]
            title = f"{model.title}: {setting.words(settings)}"
            found += [plot for panel in members if (plot := _lams(findings, panel, title))]
            bars = _bars(findings, members, title)
            found += [bars] if bars else []
    return [_numbered(plot, place) for place, plot in enumerate(found, 1)]


def _numbered(plot: Plot, place: int) -> Plot:
    picture = plot.picture
    return Plot(Picture(f"{picture.name}-{place:02}", picture.caption, picture.alt), plot.draw)


def _speeds(findings: Findings) -> list[Plot]:
    """Accuracy against forwards: a figure per task, setting, score and kind of selection."""
    found = []
    for contest in findings.contests:
        groups: dict[tuple[Setting, str, str], list[Curve]] = {}
        for curve in (each.curve for each in contest.scored if each.speed == "nominal"):
            reading = read(curve.summaries[0].trial.rule)
            points = tuple(_point(each, read(each.trial.rule).knob) for each in curve.summaries)
            drawn = Curve(_lam_label(reading), points, baseline=not reading.lam)
            groups.setdefault((curve.setting, reading.score, reading.kind), []).append(drawn)
        model = next(model for model in findings.models if model.weights == contest.weights)
        for (setting, score, kind), curves in groups.items():
            title = f"{contest.exam.words(findings.exams)}, {setting.words()}"
            if len(findings.models) > 1:
                title = f"{model.title}: {title}"
            what = f"{score} | {kind}, numbers: {_argument(kind)}"
            caption = f"Accuracy against forward passes, {title} ({what})"
            picture = Picture(f"speed-{_slug(contest.exam.task)}", caption, _told(caption, curves))
            found.append(Plot(picture, _speed(curves, f"{title}\n{what}")))
    return found


def _speed(curves: Sequence[Curve], title: str) -> Callable[..., None]:
    return lambda *files: accuracy_against_forwards(curves, clean_lines(title), *files)


def _lams(findings: Findings, panel: Panel, title: str) -> Plot | None:
    """Accuracy over lam at the usual knob: a panel per task, a curve per score."""
    usual = usual_knobs(panel.summaries)
    facets = []
    for exam in panel.exams:
        curves: dict[str, dict[float, Point]] = {}
        for reading in panel.readings():
            each = panel.find(reading.rule, exam)
            if each is not None and reading.knob == usual[reading.kind]:
                names = [f"{reading.score} | {reading.selection}"]
                if not reading.lam:  # the baseline of every reading of swd
                    names += [f"{names[0]}, {v}" for v in _variants(panel, reading)]
                elif reading.variant:
                    names = [f"{names[0]}, {reading.variant}"]
                for name in names:
                    point = _point(each, show(reading.lam))
                    curves.setdefault(name, {})[reading.lam] = point
        kept = {name: found for name, found in curves.items() if len(found) >= LEAST_LAMS}
        if kept:
            lams = sorted({lam for found in kept.values() for lam in found})
            drawn = [
                Curve(name, tuple(found[lam] for lam in sorted(found)))
                for name, found in kept.items()
            ]
            words = exam.words(findings.exams)
            facets.append(Facet(clean(words), tuple(map(show, lams)), tuple(drawn)))
    if not facets:
        return None
    caption = f"Accuracy over lam, {title}, {panel.title}"
    told = _told(caption, [curve for facet in facets for curve in facet.curves])
    return Plot(
        Picture("lam", caption, told),
        lambda *files: accuracy_over_knob(facets, clean(f"{title}, {panel.title}"), "lam", *files),
    )


def _variants(panel: Panel, baseline: Reading) -> list[str]:
    """Readings of swd other than the default that were run on top of a baseline."""
    found = {
        reading.variant: None
        for reading in panel.readings()
        if reading.variant and reading.base == baseline.rule
    }
    return list(found)


def _bars(findings: Findings, members: Sequence[Panel], title: str) -> Plot | None:
    """Accuracy by selection: a panel per task, a group per selection, a bar per lam."""
    readings = [r for panel in members for r in panel.split()[0] if not r.problem]
    if not readings:
        return None
    counts = Counter(_plain_score(reading) for reading in readings)
    score = max(counts, key=lambda name: (counts[name], -_rank(name)))
    chosen = [reading for reading in readings if _plain_score(reading) == score]
    groups = list(dict.fromkeys(_group(reading) for reading in chosen))
    if len(groups) < 2:
        return None
    knobs = {group: _knobs(chosen, group) for group in groups}
    facets = []
    for exam in exams_of(each for panel in members for each in panel.summaries):
        curves: dict[str, list[Point]] = {}
        for reading in sorted(chosen, key=lambda reading: (reading.lam, reading.variant)):
            each = next((e for panel in members if (e := panel.find(reading.rule, exam))), None)
            if each is not None:
                point = _point(each, knobs[_group(reading)])
                curves.setdefault(_lam_label(reading), []).append(point)
        drawn = [
            Curve(label, tuple(points), baseline=label == "lam 0")
            for label, points in curves.items()
        ]
        present = {point.knob for curve in drawn for point in curve.points}
        axis = tuple(knob for knob in knobs.values() if knob in present)
        facets.append(Facet(clean(exam.words(findings.exams)), axis, tuple(drawn)))
    caption = f"Accuracy by selection, {title}, {score}"
    told = _told(caption, [curve for facet in facets for curve in facet.curves])
    return Plot(
        Picture("selections", caption, told),
        lambda *files: accuracy_bars(facets, clean(f"{title}, {score}"), "selection", *files),
    )


def _plain_score(reading: Reading) -> str:
    parts = reading.score.split(" | ")
    return next((score for score in SCORES if score in parts), reading.score)


def _rank(score: str) -> int:
    return SCORES.index(score) if score in SCORES else len(SCORES)


def _group(reading: Reading) -> str:
    return f"credit,\n{reading.kind}" if reading.score.startswith("credit(") else reading.kind


def _knobs(readings: Sequence[Reading], group: str) -> str:
    """The name under a group of bars: its selection, and every knob that its bars have."""
    found = {reading.knob for reading in readings if _group(reading) == group}
    return f"{group}\n{' / '.join(sorted(found, key=sortable))}".rstrip()


def _point(each: Summary, knob: str) -> Point:
    low, high = each.interval()
    return Point(knob, each.mean("nfe"), each.accuracy(), low, high)


def _lam_label(reading: Reading) -> str:
    return f"lam {show(reading.lam)}" + (f", {reading.variant}" if reading.variant else "")


def _argument(kind: str) -> str:
    return kind_named(kind).arguments[0].name


def _told(caption: str, curves: Sequence[Curve]) -> str:
    """The picture in words, for who does not see it."""
    said = []
    for curve in curves:
        values = [point.accuracy for point in curve.points]
        said.append(f"{curve.label}: {percent(min(values))} to {percent(max(values))}%")
    return f"{caption}. {'; '.join(said)}. The tables have every figure.".replace("\n", " ")


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40] or "task"


def clean_lines(text: str) -> str:
    """Line breaks of our own stay."""
    return "\n".join(clean(line) for line in text.split("\n"))
