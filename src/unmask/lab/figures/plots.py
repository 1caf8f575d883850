"""Plots of accuracy over forward passes; matplotlib is imported when a plot is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unmask.errors import RequestError
from unmask.trace.drawing import COLOURS, Array, Label, add_legend, box, sheet, stroke, write_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

LINES = ("-", "-.", (0, (7, 1.5)), (0, (5, 1, 1, 1, 1, 1)))
GREYS = ("#595959", "#8C8C8C")
DASHES = ("--", (0, (1.5, 1.5)), (0, (6, 2, 2, 2)))
MARKERS = ("o", "s", "^", "D", "v", "<", ">")  # 7 markers and 6 colours: a pair repeats late


@dataclass(frozen=True)
class PlotPoint:
    """One measured setting; accuracy, low and high are shares in [0, 1]."""

    knob: str  # the label of the point: the value that changes along the curve, "0.1"
    nfe: float  # mean forward passes per problem
    accuracy: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.accuracy <= self.high <= 1:
            raise RequestError(
                f"a point needs 0 <= low <= accuracy <= high <= 1, got {self.low}, "
                f"{self.accuracy} and {self.high} at {self.knob!r}"
            )
        if not 0 <= self.nfe < math.inf:
            raise RequestError(f"nfe must be finite and >= 0, got {self.nfe} at {self.knob!r}")


@dataclass(frozen=True)
class PlotCurve:
    """A rule at several values of its knob; a line joins the points in order."""

    label: str
    points: tuple[PlotPoint, ...]
    baseline: bool = False  # drawn dashed and grey

    def __post_init__(self) -> None:
        if not self.points:
            raise RequestError(f"the curve {self.label!r} has no points")


def accuracy_against_forwards(curves: Sequence[PlotCurve], title: str, *files: Path) -> None:
    """Plot accuracy with its intervals over mean NFE into .svg, .png or .pdf files.

    With the same version of matplotlib the same numbers give the same bytes. The plot opens no
    window and leaves no global state.
    """
    with sheet(files, len(curves)) as figure:
        axes = figure.add_subplot()
        lines = [
            draw_curve(axes, curve, [point.nfe for point in curve.points], **style)
            for curve, style in zip(curves, styles(curves), strict=True)
        ]
        furnish(axes, title)
        axes.set_xlabel("mean forward passes per problem (NFE)")
        add_legend(figure, lines)
        figure.draw_without_rendering()  # computes the layout, which the labels need
        figure.set_layout_engine("none")
        _write_knobs(axes, curves, lines)


def styles(curves: Sequence[PlotCurve]) -> Iterator[dict[str, Any]]:
    """The colour, line and marker of each curve."""
    count = {True: 0, False: 0}
    for i, curve in enumerate(curves):
        colours, dashes = (GREYS, DASHES) if curve.baseline else (COLOURS, LINES)
        nth = count[curve.baseline]
        count[curve.baseline] += 1
        yield {
            "color": colours[nth % len(colours)],
            "linestyle": dashes[nth % len(dashes)],
            "marker": MARKERS[i % len(MARKERS)],
            "zorder": 2 if curve.baseline else 3,
        }


def draw_curve(axes: Axes, curve: PlotCurve, x: Sequence[float], **style: Any) -> Line2D:
    """Draw a curve with its intervals at the places `x`."""
    _, accuracy, low, high = _columns(curve)
    axes.vlines(x, low, high, color=style["color"], alpha=0.45, linewidth=1.1, zorder=1)
    (line,) = axes.plot(
        x,
        accuracy,
        label=curve.label,
        linewidth=1.4,
        markersize=5,
        markeredgecolor="white",
        markeredgewidth=0.6,
        **style,
    )
    return line


def furnish(axes: Axes, title: str) -> None:
    """Add the title, the axis of accuracy and grid lines."""
    axes.set_title(title, loc="left", fontsize=10, pad=10, wrap=True)
    axes.set_ylabel("accuracy (%)")
    axes.grid(axis="y", color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=3, width=0.7)
    axes.margins(x=0.08, y=0.08)
    bottom, top = axes.get_ylim()  # may exceed 0 and 100 by the size of a marker
    axes.set_yticks([y for y in axes.get_yticks() if max(0, bottom) <= y <= min(100, top)])


def _write_knobs(axes: Axes, curves: Sequence[PlotCurve], lines: Sequence[Line2D]) -> None:
    """Write the knob beside every point, in the colour of the curve."""
    pixels = axes.figure.dpi / 72  # per point
    covered = np.concatenate([drawn_pixels(axes, curve, pixels) for curve in curves])  # [N, 2]
    write_labels(
        axes,
        [
            Label(point.knob, point.nfe, 100 * point.accuracy, str(line.get_color()))
            for curve, line in zip(curves, lines, strict=True)
            for point in curve.points
        ],
        covered,
    )


def drawn_pixels(axes: Axes, curve: PlotCurve, pixels: float) -> Array:
    """The pixels of a curve's lines, error bars and markers: [N, 2]."""
    nfe, accuracy, low, high = _columns(curve)
    spots, lows, highs = (
        axes.transData.transform(np.stack([nfe, y], -1)) for y in (accuracy, low, high)
    )  # [P, 2] each
    strokes = [*pairwise(spots), *zip(lows, highs, strict=True)]
    markers = [box(spot, np.full(2, 2.5 * pixels)) for spot in spots]
    return np.concatenate([*(stroke(start, end) for start, end in strokes), *markers])


def _columns(curve: PlotCurve) -> tuple[Array, Array, Array, Array]:
    """NFE, and accuracy, low and high in percent: [P] each."""
    rows = [(p.nfe, 100 * p.accuracy, 100 * p.low, 100 * p.high) for p in curve.points]
    nfe, accuracy, low, high = np.array(rows, dtype=np.float64).T
    return nfe, accuracy, low, high
