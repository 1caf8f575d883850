"""Figures of measured rules; matplotlib is an extra, imported when a figure is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unmask.errors import RequestError, UnmaskError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Array: TypeAlias = NDArray[np.float64]

# What each kind of file must not tell, so that the same numbers give the same bytes.
DATES: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".png": {},
    ".pdf": {"CreationDate": None},
}
# Okabe and Ito's colours, safe for the colour-blind, less black and a yellow too pale for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LINES = ("-", "-.", (0, (7, 1.5)), (0, (5, 1, 1, 1, 1, 1)))
GREYS = ("#595959", "#8C8C8C")
DASHES = ("--", (0, (1.5, 1.5)), (0, (6, 2, 2, 2)))
MARKERS = ("o", "s", "^", "D", "v", "<", ">")  # 7 of them, so that a colour returns with another
STYLE: dict[str, Any] = {
    "axes.edgecolor": "#404040",
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "pdf.fonttype": 42,  # fonts as fonts: text can be searched, and publishers take it
    "svg.fonttype": "none",
    "svg.hashsalt": "unmask",
    "text.parse_math": False,
}
# Where a knob may stand: in sixteenths of a turn from the right, best first, and points away.
TURNS = (4, 2, 6, 12, 10, 14, 0, 8, 3, 5, 1, 7, 13, 11, 15, 9)
GAPS = (4.5, 7.0, 10.0, 14.0)


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


@contextmanager
def sheet(
    files: Sequence[Path], curves: int, width: float = 6.0, height: float = 4.0
) -> Iterator[Figure]:
    """A figure in the style of the house, written to the files once it is drawn."""
    for file in files:
        if file.suffix.lower() not in DATES:
            raise RequestError(f"a figure ends in {', '.join(DATES)}, got {file.name!r}")
    if not curves:
        raise RequestError("a figure needs at least one curve, got none")
    matplotlib = _matplotlib()
    from matplotlib.figure import Figure

    with matplotlib.style.context("default"), matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), dpi=100, layout="constrained")
        yield figure
        for file in files:
            kind = file.suffix.lower()
            figure.savefig(file, format=kind[1:], dpi=200, metadata=DATES[kind])


def _matplotlib() -> Any:
    try:
        import matplotlib
        import matplotlib.style
    except ImportError:
        raise UnmaskError("plots need matplotlib; pip install 'unmask[plot]'") from None
    return matplotlib


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


def add_legend(figure: Figure, lines: Sequence[Artist], most: int = 3) -> None:
    """Below the axes, where no data is, in as many columns as fit."""
    for columns in range(min(most, len(lines)), 0, -1):
        legend = figure.legend(
            handles=lines,
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            handlelength=3.2,
            columnspacing=2.0,
        )
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


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


@dataclass(frozen=True)
class Label:
    """A text that belongs to a point of the axes."""

    text: str
    x: float
    y: float
    colour: str
    bold: bool = False


def write_labels(axes: Axes, labels: Sequence[Label], covered: Array) -> None:
    """Each beside its point where it covers the least of these pixels and of other labels."""
    pixels = axes.figure.dpi / 72
    for label in labels:
        spot = axes.transData.transform((label.x, label.y))  # [2]
        text = axes.annotate(
            label.text,
            (label.x, label.y),
            (0, 0),
            textcoords="offset points",
            color=label.colour,
            fontsize=7,
            fontweight="bold" if label.bold else "normal",
            ha="center",
            va="center",
        )
        extent = text.get_window_extent()
        half = np.array([extent.width, extent.height]) / 2  # [2]
        centres = _places(spot, half, pixels)  # [C, 2]
        centre = centres[np.argmin(_cost(centres, half, covered, axes))]
        text.set_position(tuple((centre - spot) / pixels))
        covered = np.concatenate([covered, _box(centre, half)])


def _places(spot: Array, half: Array, pixels: float) -> Array:
    """Centres that a label may have around a point, best first: [C, 2]."""
    angles = np.array(TURNS) * np.pi / 8
    around = np.stack([np.cos(angles), np.sin(angles)], -1)  # [16, 2]
    return np.concatenate([spot + around * (half + gap * pixels) for gap in GAPS])


def _cost(centres: Array, half: Array, covered: Array, axes: Axes) -> Array:
    """How much each place covers, and a little for being late among them; outside is out: [C]."""
    hits = (np.abs(covered - centres[:, None]) <= half + 1).all(-1).sum(-1)  # [C, N, 2] -> [C]
    frame = axes.bbox
    outside = ((centres - half < frame.min) | (centres + half > frame.max)).any(-1)  # [C]
    return np.asarray(hits + 1000 * outside + np.arange(len(centres)) / len(TURNS))


def _drawn(axes: Axes, curve: Curve, pixels: float) -> Array:
    """Pixels along a curve's lines, error bars and markers: [N, 2]."""
    nfe, accuracy, low, high = _columns(curve)
    spots, lows, highs = (
        axes.transData.transform(np.stack([nfe, y], -1)) for y in (accuracy, low, high)
    )  # [P, 2] each
    strokes = [*pairwise(spots), *zip(lows, highs, strict=True)]
    markers = [_box(spot, np.full(2, 2.5 * pixels)) for spot in spots]
    return np.concatenate([*(stroke(start, end) for start, end in strokes), *markers])


def stroke(start: Array, end: Array) -> Array:
    """Every other pixel from start to end: [N, 2]."""
    steps = 2 + int(np.hypot(*(end - start)) / 2)
    return np.linspace(start, end, steps)


def _box(centre: Array, half: Array) -> Array:
    """A grid of pixels that fills a box: [N, 2]."""
    x, y = (np.linspace(-side, side, 7) for side in half)
    return np.asarray(centre + np.stack(np.meshgrid(x, y), -1).reshape(-1, 2))


def _columns(curve: Curve) -> tuple[Array, Array, Array, Array]:
    """NFE, and in percent accuracy, low and high: [P] each."""
    rows = [(p.nfe, 100 * p.accuracy, 100 * p.low, 100 * p.high) for p in curve.points]
    nfe, accuracy, low, high = np.array(rows, dtype=np.float64).T
    return nfe, accuracy, low, high
