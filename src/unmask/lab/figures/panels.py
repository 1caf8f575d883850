"""Plots with a panel for each task: accuracy over lam, and bars for each selection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unmask.errors import RequestError
from unmask.lab.figures.plots import GREYS, PlotCurve, draw_curve, furnish, styles
from unmask.trace.drawing import add_legend, sheet

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 3.4, 3.0  # inches of a panel
SPREAD = 0.16  # the offset between curves, so that their intervals do not overlap
BARS = 0.8  # the part of a group's width that the bars fill


@dataclass(frozen=True)
class Facet:
    """One panel: the values on its axis, and curves with points at these values."""

    title: str
    knobs: tuple[str, ...]
    curves: tuple[PlotCurve, ...]

    def __post_init__(self) -> None:
        for curve in self.curves:
            for point in curve.points:
                if point.knob not in self.knobs:
                    raise RequestError(
                        f"{curve.label!r} has a point at {point.knob!r}, which is not on the axis"
                    )


def accuracy_over_knob(
    facets: Sequence[Facet], title: str, knob: str, *files: Path, across: int | None = None
) -> None:
    """Plot lines with intervals over the values of a knob, at equal distances.

    Args:
        facets: the panels; curves with the same label look the same in all of them.
        title: the text above all panels.
        knob: the name of the axis of each panel.
        files: .svg, .png or .pdf files to write.
        across: panels in a row (default: at most 3).
    """
    _draw(facets, (title, knob), files, _lines, across)


def accuracy_bars(facets: Sequence[Facet], title: str, knob: str, *files: Path) -> None:
    """Plot bars with intervals: a group for each knob, a bar for each curve."""
    _draw(facets, (title, knob), files, _bars)


def _draw(
    facets: Sequence[Facet],
    words: tuple[str, str],
    files: Sequence[Path],
    draw: Any,
    across: int | None = None,
) -> None:
    title, knob = words
    named = {curve.label: curve for facet in facets for curve in facet.curves}
    if across is None:
        across = len(facets) if len(facets) <= 3 else 2 if len(facets) == 4 else 3
    down = math.ceil(len(facets) / max(across, 1))
    with sheet(files, len(named), max(6.0, WIDTH * across), HEIGHT * down + 0.9) as figure:
        looks = dict(zip(named, styles(list(named.values())), strict=True))
        drawn: dict[str, Artist] = {}
        for place, facet in enumerate(facets):
            axes = figure.add_subplot(down, across, place + 1)
            drawn = draw(axes, facet, looks) | drawn
            axes.set_xticks(range(len(facet.knobs)), facet.knobs)
            axes.set_xlim(-0.6, len(facet.knobs) - 0.4)
            furnish(axes, facet.title)
            axes.set_xlabel(knob)
            axes.yaxis.labelpad = 7
            if place % across:
                axes.set_ylabel("")
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
        add_legend(figure, [drawn[label] for label in named], most=4)


def _lines(axes: Axes, facet: Facet, looks: dict[str, dict[str, Any]]) -> dict[str, Artist]:
    artists: dict[str, Artist] = {}
    for nth, curve in enumerate(facet.curves):
        offset = SPREAD * (nth - (len(facet.curves) - 1) / 2) / max(1, len(facet.curves) - 1)
        x = [facet.knobs.index(point.knob) + offset for point in curve.points]
        artists[curve.label] = draw_curve(axes, curve, x, **looks[curve.label])
    return artists


def _bars(axes: Axes, facet: Facet, looks: dict[str, dict[str, Any]]) -> dict[str, Artist]:
    """The bars of a group stand side by side, centred at the group's place on the axis."""
    artists: dict[str, Artist] = {}
    axes.set_ylim(0, 104)  # the same for all panels; an interval may end at 100
    width = BARS / max(1, len(facet.curves))
    for nth, curve in enumerate(facet.curves):
        x = []
        for point in curve.points:
            members = [i for i, other in enumerate(facet.curves) if _has(other, point.knob)]
            place = members.index(nth) - (len(members) - 1) / 2
            x.append(facet.knobs.index(point.knob) + place * width)
        artists[curve.label] = axes.bar(
            x,
            [100 * point.accuracy for point in curve.points],
            width * 0.92,
            yerr=[
                [100 * (point.accuracy - point.low) for point in curve.points],
                [100 * (point.high - point.accuracy) for point in curve.points],
            ],
            label=curve.label,
            color=GREYS[1] if curve.baseline else looks[curve.label]["color"],
            error_kw={"elinewidth": 0.9, "ecolor": "#000000", "capsize": 1.5, "capthick": 0.9},
        )  # type: ignore[assignment]
    return artists


def _has(curve: PlotCurve, knob: str) -> bool:
    return any(point.knob == knob for point in curve.points)
