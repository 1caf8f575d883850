"""Drawing with matplotlib: reproducible files, legends, labels placed where they cover least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from warnings import catch_warnings, filterwarnings

import numpy as np
from numpy.typing import NDArray

from unmask.errors import RequestError, UnmaskError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array: TypeAlias = NDArray[np.float64]

# Metadata of each kind of file, without a date: the same numbers give the same bytes.
DATES: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".png": {},
    ".pdf": {"CreationDate": None},
}
# Okabe and Ito's colours for colour-blind readers, without black and without the pale yellow.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLE: dict[str, Any] = {
    "axes.edgecolor": "#404040",
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "pdf.fonttype": 42,  # embedded fonts: the text of the PDF can be searched
    "svg.fonttype": "none",
    "svg.hashsalt": "unmask",
    "text.parse_math": False,
}
# Places of a label: angles in sixteenths of a turn, best first, and distances in points.
TURNS = (4, 2, 6, 12, 10, 14, 0, 8, 3, 5, 1, 7, 13, 11, 15, 9)
GAPS = (4.5, 7.0, 10.0, 14.0)


@contextmanager
def sheet(
    files: Sequence[Path], curves: int, width: float = 6.0, height: float = 4.0
) -> Iterator[Figure]:
    """A figure in the common style; it is saved to the files at the end of the `with` block."""
    for file in files:
        if file.suffix.lower() not in DATES:
            raise RequestError(f"a figure must end in {', '.join(DATES)}, got {file.name!r}")
    if not curves:
        raise RequestError("a figure needs at least one curve, got none")
    matplotlib = _matplotlib()
    from matplotlib.figure import Figure

    with matplotlib.style.context("default"), matplotlib.rc_context(STYLE), catch_warnings():
        filterwarnings(
            "ignore", "Glyph .* missing from font"
        )  # drawn as a box; an SVG has the text
        figure = Figure(figsize=(width, height), dpi=100, layout="constrained")
        yield figure
        for file in files:
            kind = file.suffix.lower()
            figure.savefig(file, format=kind[1:], dpi=200, metadata=DATES[kind])
            figure.set_layout_engine("none")  # the next file has the same places


def _matplotlib() -> Any:
    try:
        import matplotlib
        import matplotlib.style
    except ImportError:
        raise UnmaskError("plots need matplotlib; pip install 'unmask[plot]'") from None
    return matplotlib


def add_legend(figure: Figure, lines: Sequence[Artist], most: int = 3) -> None:
    """Add a legend below the axes, in as many columns as fit."""
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


@dataclass(frozen=True)
class Label:
    """A text beside a point of the axes."""

    text: str
    x: float
    y: float
    colour: str
    bold: bool = False


def write_labels(axes: Axes, labels: Sequence[Label], covered: Array) -> None:
    """Write each label beside its point, where it covers the fewest of these pixels and labels."""
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
        covered = np.concatenate([covered, box(centre, half)])


def _places(spot: Array, half: Array, pixels: float) -> Array:
    """The possible centres of a label around a point, best first: [C, 2]."""
    angles = np.array(TURNS) * np.pi / 8
    around = np.stack([np.cos(angles), np.sin(angles)], -1)  # [16, 2]
    return np.concatenate([spot + around * (half + gap * pixels) for gap in GAPS])


def _cost(centres: Array, half: Array, covered: Array, axes: Axes) -> Array:
    """The pixels that each place covers, plus a penalty for later places and outside: [C]."""
    hits = (np.abs(covered - centres[:, None]) <= half + 1).all(-1).sum(-1)  # [C, N, 2] -> [C]
    frame = axes.bbox
    outside = ((centres - half < frame.min) | (centres + half > frame.max)).any(-1)  # [C]
    return np.asarray(hits + 1000 * outside + np.arange(len(centres)) / len(TURNS))


def stroke(start: Array, end: Array) -> Array:
    """Every second pixel from start to end: [N, 2]."""
    steps = 2 + int(np.hypot(*(end - start)) / 2)
    return np.linspace(start, end, steps)


def box(centre: Array, half: Array) -> Array:
    """A grid of pixels that fills a box: [N, 2]."""
    x, y = (np.linspace(-side, side, 7) for side in half)
    return np.asarray(centre + np.stack(np.meshgrid(x, y), -1).reshape(-1, 2))
