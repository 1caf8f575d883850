"""Bars of accuracy with their intervals; matplotlib is imported when a plot is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unmask.lab.figures.plots import GREYS
from unmask.trace.drawing import COLOURS, sheet


@dataclass(frozen=True)
class Bar:
    """One measured setting; accuracy, low and high are shares in [0, 1]."""

    label: str
    note: str  # stands behind the bar, such as its forwards
    accuracy: float
    low: float
    high: float
    plain: bool = False  # drawn grey


def accuracy_bars(bars: Sequence[Bar], title: str, *files: Path) -> None:
    """Draw a bar for each setting, from the first on top, into .svg, .png or .pdf files."""
    with sheet(files, len(bars), 6.6, 1.2 + 0.36 * len(bars)) as figure:
        axes = figure.add_subplot()
        places = range(len(bars))
        axes.barh(
            places,
            [100 * bar.accuracy for bar in bars],
            height=0.62,
            color=[GREYS[1] if bar.plain else COLOURS[0] for bar in bars],
        )
        for place, bar in zip(places, bars, strict=True):
            axes.hlines(place, 100 * bar.low, 100 * bar.high, color="#000000", linewidth=1.2)
            axes.text(100 * bar.high + 1.5, place, bar.note, va="center", fontsize=8)
        axes.set_yticks(list(places), [bar.label for bar in bars])
        axes.invert_yaxis()
        axes.set_title(title, loc="left", fontsize=10, pad=10, wrap=True)
        axes.set_xlabel("accuracy (%), 95% interval; behind it the mean forwards")
        axes.grid(axis="x", color="#E6E6E6", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(length=3, width=0.7)
        axes.set_xlim(0, 118)
        axes.set_xticks(range(0, 101, 20))
