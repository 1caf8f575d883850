"""A plot of accuracy against forwards with a name at each rule and the front of the best."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unmask.lab.figures.plots import PlotCurve, PlotPoint, draw_curve, drawn_pixels, furnish, styles
from unmask.trace.drawing import Array, Label, sheet, stroke, write_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FRONT = "#8C8C8C"
MOST_NAMED = 12  # rules whose names fit at their points; more stand in a list beside the plot


def front_scatter(
    curves: Sequence[PlotCurve], front: Sequence[PlotPoint], title: str, *files: Path
) -> None:
    """Plot every rule at its points, joined where it has several, and the front as steps.

    The front is drawn as what can be reached: its accuracy holds until the next point. If there are
    many rules, those on the front have their names at their points, and all are in a list.
    """
    many = len(curves) > MOST_NAMED
    with sheet(files, len(curves), 9.6 if many else 8.0, 5.2) as figure:
        axes = figure.add_subplot()
        steps = _steps(front)
        axes.plot(*steps.T, color=FRONT, linewidth=5, alpha=0.3, zorder=0, solid_joinstyle="miter")
        spots = [(point.nfe, 100 * point.accuracy) for point in front]
        axes.plot(*zip(*spots, strict=True), "o", color=FRONT, markersize=13, alpha=0.3, zorder=0)
        lines = [
            draw_curve(axes, curve, [point.nfe for point in curve.points], **style)
            for curve, style in zip(curves, styles(curves), strict=True)
        ]
        furnish(axes, title)
        axes.set_xlabel("mean forward passes per problem (NFE)")
        axes.margins(x=0.16, y=0.12)
        if many:
            names = [curve.label for curve in curves]
            axes.legend(
                lines, names, loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize="x-small",
                frameon=False, handlelength=3.5,
            )  # fmt: skip
        figure.draw_without_rendering()  # computes the layout, which the labels need
        figure.set_layout_engine("none")
        labels = [
            Label(curve.label, named.nfe, 100 * named.accuracy, str(line.get_color()))
            for curve, line in zip(curves, lines, strict=True)
            for named in [_named(curve)]
            if not many or (named.nfe, 100 * named.accuracy) in spots
        ]
        write_labels(axes, labels, np.concatenate([_covered(axes, curves), _along(axes, steps)]))


def _named(curve: PlotCurve) -> PlotPoint:
    """The point that carries the name: the most accurate one, of these the cheapest."""
    return max(curve.points, key=lambda point: (point.accuracy, -point.nfe))


def _steps(front: Sequence[PlotPoint]) -> Array:
    """The corners of the front: [2 F - 1, 2]."""
    corners = []
    for before, point in zip([None, *front], front, strict=False):
        if before is not None:
            corners.append((point.nfe, 100 * before.accuracy))
        corners.append((point.nfe, 100 * point.accuracy))
    return np.array(corners)


def _covered(axes: Axes, curves: Sequence[PlotCurve]) -> Array:
    pixels = axes.figure.dpi / 72
    return np.concatenate([drawn_pixels(axes, curve, pixels) for curve in curves])


def _along(axes: Axes, corners: Array) -> Array:
    places = axes.transData.transform(corners)
    strokes = [stroke(a, b) for a, b in pairwise(places)]
    return np.concatenate(strokes) if strokes else places
