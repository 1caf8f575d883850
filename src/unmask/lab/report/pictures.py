"""The plots of a report: accuracy over forwards, accuracy over lam, bars for each selection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from unmask.lab.figures.panels import Facet, accuracy_bars, accuracy_over_knob
from unmask.lab.figures.plots import PlotCurve, PlotPoint, accuracy_against_forwards
from unmask.lab.report.aup_curves import AupCurve
from unmask.lab.report.blocks import Picture
from unmask.lab.report.findings import Findings
from unmask.lab.report.overview import (
    Plot,
    curves_in,
    group_of,
    in_words,
    overviews,
    point_of,
    points_of,
    slug,
    title_of,
)
from unmask.lab.report.panels import Exam, TrialPanel, TrialSetting, exams_of, panels, usual_knobs
from unmask.lab.report.rule_parts import SCORES, RuleParts, parts_of, sortable, versioned
from unmask.lab.report.wording import clean
from unmask.rules.registry import show

LEAST_LAMS = 3  # the tables show two values of lam better than a plot


def plots(findings: Findings) -> list[Plot]:
    """All plots in the order of the report, with unique, numbered names."""
    drawn = overviews(findings) + _speeds(findings)
    for model in findings.models:
        every = panels(findings.current, model.weights)
        settings = list(dict.fromkeys(panel.setting for panel in every))
        drawn += _lams(findings, model.title, every)
        for setting in settings:
            members = [panel for panel in every if panel.setting == setting]
            bars = _bars(findings, members, f"{model.title}: {setting.words(settings)}")
            drawn += [bars] if bars else []
    return [
        replace(plot, picture=replace(plot.picture, name=f"{plot.picture.name}-{place:02}"))
        for place, plot in enumerate(drawn, 1)
    ]


def _speeds(findings: Findings) -> list[Plot]:
    """Accuracy over forwards: a plot for each task, setting, score and kind of selection."""
    speeds = []
    for contest in findings.contests:
        groups: dict[tuple[TrialSetting, str, str, str], list[AupCurve]] = {}
        for curve in curves_in(contest):
            groups.setdefault(group_of(curve), []).append(curve)
        for (_, score, kind, knob), members in groups.items():
            title = title_of(findings, members[0].summaries[0])
            curves = _labelled(members)
            what = f"{score} | {kind}, numbers: {knob}"
            caption = f"Accuracy against forward passes, {title} ({what})"
            picture = Picture(
                f"speed-{slug(contest.exam.task)}", caption, in_words(caption, curves)
            )
            text = "\n".join(map(clean, (title, what)))
            speeds.append(Plot(picture, partial(accuracy_against_forwards, curves, text)))
    return speeds


def _labelled(members: Sequence[AupCurve]) -> list[PlotCurve]:
    """Curves named by their lam, or by their methods where lam does not tell them apart."""
    parts = [parts_of(curve.method) for curve in members]
    labels = [_lam_label(each) for each in parts]
    if len(set(labels)) < len(labels) or not any(each.lam for each in parts):
        labels = [curve.name for curve in members]
    return [
        PlotCurve(clean(label), points_of(curve), baseline=not each.lam and label != curve.name)
        for label, curve, each in zip(labels, members, parts, strict=True)
    ]


def _lams(findings: Findings, model: str, every: Sequence[TrialPanel]) -> list[Plot]:
    """Accuracy over lam: a plot for all windows of a setting, so that their best lam compare."""
    groups: dict[tuple[TrialSetting, str], list[TrialPanel]] = {}
    for panel in every:
        groups.setdefault((replace(panel.setting, block=None), panel.family), []).append(panel)
    settings = list(dict.fromkeys(panel.setting for panel in every))
    drawn = []
    for group in groups.values():
        faceted = [
            panel for panel in group if any(_curves(findings, panel, e) for e in panel.exams)
        ]
        if faceted:
            setting = faceted[0].setting
            words = setting.words(settings)
            if len(faceted) > 1:
                words = words.removeprefix(setting.window).removeprefix(", ")
            drawn.append(_lam_plot(findings, faceted, f"{model}: {words}" if words else model))
    return drawn


def _lam_plot(findings: Findings, group: Sequence[TrialPanel], title: str) -> Plot:
    """Accuracy over lam at the usual knob: a panel for each task and window."""
    facets = []
    for exam in exams_of(each for panel in group for each in panel.summaries):
        for panel in group:
            curves = _curves(findings, panel, exam)
            if curves:
                window = f", {panel.setting.window}" if len(group) > 1 else ""
                lams = sorted({point.knob for curve in curves for point in curve.points}, key=float)
                words = f"{exam.words(findings.exams)}{window}"
                facets.append(Facet(clean(words), tuple(lams), tuple(curves)))
    caption = f"Accuracy over lam, {title}, {group[0].title}"
    alt = in_words(caption, [curve for facet in facets for curve in facet.curves])
    text, across = clean(f"{title}, {group[0].title}"), len(group) if len(group) > 1 else None
    draw = partial(accuracy_over_knob, facets, text, "lam", across=across)
    return Plot(Picture("lam", caption, alt), draw)


def _curves(findings: Findings, panel: TrialPanel, exam: Exam) -> list[PlotCurve]:
    """A curve for each score and variant of swd with three lam or more, then the paper's."""
    usual = usual_knobs(panel.summaries)
    curves: dict[str, dict[float, PlotPoint]] = {}
    papers: dict[str, dict[float, PlotPoint]] = {}
    for parts in panel.rules():
        each = panel.find(parts.name, exam)
        if each is None or parts.knob != usual[parts.kind]:
            continue
        name = versioned(f"{parts.score} | {parts.selection}", parts.version)
        variants = [parts.variant] if parts.lam else ["", *_variants(panel, parts)]
        for variant in variants:  # the baseline belongs to every variant of swd
            label = f"{name}, {variant}" if variant else name
            curves.setdefault(label, {})[parts.lam] = point_of(each, show(parts.lam))
        for figure in findings.paper(each.trial)[:1]:
            share = figure.accuracy / 100
            point = PlotPoint(show(parts.lam), each.mean("nfe"), share, share, share)
            papers.setdefault(f"the paper: {name}", {})[parts.lam] = point
    kept = {name: points for name, points in curves.items() if len(points) >= LEAST_LAMS}
    if not kept:
        return []
    theirs = {name: points for name, points in papers.items() if len(points) > 1}
    return [
        PlotCurve(name, tuple(points[lam] for lam in sorted(points)), baseline=name in theirs)
        for name, points in (kept | theirs).items()
    ]


def _variants(panel: TrialPanel, baseline: RuleParts) -> list[str]:
    """The variants of swd that were run with the rule of a baseline."""
    rules = [parts for parts in panel.rules() if parts.base == baseline.rule]
    return list(dict.fromkeys(parts.variant for parts in rules if parts.variant))


def _bars(findings: Findings, members: Sequence[TrialPanel], title: str) -> Plot | None:
    """Accuracy of each selection: a panel for each task, a group of bars for each selection."""
    rules = [r for panel in members for r in panel.split()[0]]
    if not rules:
        return None
    counts = Counter(_plain_score(parts) for parts in rules)
    score = max(counts, key=lambda name: (counts[name], -_rank(name)))
    chosen = [parts for parts in rules if _plain_score(parts) == score]
    groups = list(dict.fromkeys(_group(parts) for parts in chosen))
    if len(groups) < 2:
        return None
    knobs = {group: _knobs(chosen, group) for group in groups}
    facets = []
    for exam in exams_of(each for panel in members for each in panel.summaries):
        curves: dict[str, list[PlotPoint]] = {}
        for parts in sorted(chosen, key=lambda parts: (parts.lam, parts.variant)):
            each = next((e for panel in members if (e := panel.find(parts.name, exam))), None)
            if each is not None:
                point = point_of(each, knobs[_group(parts)])
                label = versioned(_lam_label(parts), parts.version)
                curves.setdefault(label, []).append(point)
        drawn = [
            PlotCurve(label, tuple(points), baseline=label == "lam 0")
            for label, points in curves.items()
        ]
        present = {point.knob for curve in drawn for point in curve.points}
        axis = tuple(knob for knob in knobs.values() if knob in present)
        facets.append(Facet(clean(exam.words(findings.exams)), axis, tuple(drawn)))
    caption = f"Accuracy by selection, {title}, {score}"
    alt = in_words(caption, [curve for facet in facets for curve in facet.curves])
    draw = partial(accuracy_bars, facets, clean(f"{title}, {score}"), "selection")
    return Plot(Picture("selections", caption, alt), draw)


def _plain_score(parts: RuleParts) -> str:
    names = parts.score.split(" | ")
    return next((score for score in SCORES if score in names), parts.score)


def _rank(score: str) -> int:
    return SCORES.index(score) if score in SCORES else len(SCORES)


def _group(parts: RuleParts) -> str:
    return f"credit,\n{parts.kind}" if parts.score.startswith("credit(") else parts.kind


def _knobs(rules: Sequence[RuleParts], group: str) -> str:
    """The name under a group of bars: the selection and all knobs of its bars."""
    knobs = {parts.knob for parts in rules if _group(parts) == group}
    return f"{group}\n{' / '.join(sorted(knobs, key=sortable))}".rstrip()


def _lam_label(parts: RuleParts) -> str:
    return f"lam {show(parts.lam)}" + (f", {parts.variant}" if parts.variant else "")
