"""Figures of measured rules; matplotlib is an extra, imported when a figure is drawn."""

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
MARKERS = ("o", "s", "^", "D", "v", "<", ">")  # 7 of them, so that a colour returns with another


@dataclass(frozen=True)
class Point:
    """One measured setting; accuracy and the ends of its interval are shares in [0, 1]."""

    knob: str  # what changes along the curve, as written beside the point: "0.1"
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
class Curve:
    """A rule over its knob; points are joined in the order given."""

    label: str
    points: tuple[Point, ...]
    baseline: bool = False  # drawn dashed and grey

    def __post_init__(self) -> None:
        if not self.points:
            raise RequestError(f"the curve {self.label!r} has no points")


def accuracy_against_forwards(curves: Sequence[Curve], title: str, *files: Path) -> None:
    """Write a figure of accuracy, with its intervals, against mean NFE: up and left is better.

    A file's suffix, .svg, .png or .pdf, decides what is written. The same numbers give the same
    bytes with one version of matplotlib; no window is opened and no global state is left behind.
    """
    with sheet(files, len(curves)) as figure:
        axes = figure.add_subplot()
        lines = [_draw(axes, c, **style) for c, style in zip(curves, styles(curves), strict=True)]
        furnish(axes, title)
        axes.set_xlabel("mean forward passes per problem (NFE)")
        add_legend(figure, lines)
        figure.draw_without_rendering()  # settles the layout, so that pixels can be compared
        figure.set_layout_engine("none")
        _write_knobs(axes, curves, lines)


def styles(curves: Sequence[Curve]) -> Iterator[dict[str, Any]]:
    """How each curve looks: colour, line and marker all tell curves apart."""
    seen = {True: 0, False: 0}
    for i, curve in enumerate(curves):
        colours, dashes = (GREYS, DASHES) if curve.baseline else (COLOURS, LINES)
        nth = seen[curve.baseline]
        seen[curve.baseline] += 1
        yield {
            "color": colours[nth % len(colours)],
            "linestyle": dashes[nth % len(dashes)],
            "marker": MARKERS[i % len(MARKERS)],
            "zorder": 2 if curve.baseline else 3,
        }


def _draw(axes: Axes, curve: Curve, **style: Any) -> Line2D:
    nfe, accuracy, low, high = _columns(curve)
    axes.vlines(nfe, low, high, color=style["color"], alpha=0.45, linewidth=1.1, zorder=1)
    (line,) = axes.plot(
        nfe,
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
    """Title, a scale of accuracy, and lines to read it by."""
    axes.set_title(title, loc="left", fontsize=10, pad=10, wrap=True)
    axes.set_ylabel("accuracy (%)")
    axes.grid(axis="y", color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=3, width=0.7)
    axes.margins(x=0.08, y=0.08)
    bottom, top = axes.get_ylim()  # has room for whole markers at 0 and 100, but no ticks there
    axes.set_yticks([y for y in axes.get_yticks() if max(0, bottom) <= y <= min(100, top)])


def _write_knobs(axes: Axes, curves: Sequence[Curve], lines: Sequence[Line2D]) -> None:
    """Beside every point its knob, in the curve's colour, where it covers the least."""
    pixels = axes.figure.dpi / 72  # per point
    covered = np.concatenate([_drawn(axes, curve, pixels) for curve in curves])  # [N, 2]
    write_labels(
        axes,
        [
            Label(point.knob, point.nfe, 100 * point.accuracy, str(line.get_color()))
            for curve, line in zip(curves, lines, strict=True)
            for point in curve.points
        ],
        covered,
    )


def _drawn(axes: Axes, curve: Curve, pixels: float) -> Array:
    """Pixels along a curve's lines, error bars and markers: [N, 2]."""
    nfe, accuracy, low, high = _columns(curve)
    spots, lows, highs = (
        axes.transData.transform(np.stack([nfe, y], -1)) for y in (accuracy, low, high)
    )  # [P, 2] each
    strokes = [*pairwise(spots), *zip(lows, highs, strict=True)]
    markers = [box(spot, np.full(2, 2.5 * pixels)) for spot in spots]
    return np.concatenate([*(stroke(start, end) for start, end in strokes), *markers])


def _columns(curve: Curve) -> tuple[Array, Array, Array, Array]:
    """NFE, and in percent accuracy, low and high: [P] each."""
    rows = [(p.nfe, 100 * p.accuracy, 100 * p.low, 100 * p.high) for p in curve.points]
    nfe, accuracy, low, high = np.array(rows, dtype=np.float64).T
    return nfe, accuracy, low, high
