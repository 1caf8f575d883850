"""Formats numbers and names for reports."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from unmask.lab.stats import Interval

NONE = "–"


def percent(share: float) -> str:
    """A share in percent: 67.3"""
    return f"{100 * share:.1f}"


def span(interval: Interval) -> str:
    """An interval of shares in percent: [64.7, 69.8]"""
    return f"[{percent(interval.low)}, {percent(interval.high)}]"


def points(difference: float) -> str:
    """A difference of shares in points: +35.8"""
    return f"{round(100 * difference, 1) + 0.0:+.1f}"  # + 0.0: never -0.0


def points_span(interval: Interval) -> str:
    """An interval of differences in points: [+33.1, +38.4]"""
    return f"[{points(interval.low)}, {points(interval.high)}]"


def p_value(p: float) -> str:
    """A p value: p 0.031"""
    return "p <0.001" if p < 0.001 else f"p {p:.3f}"


def number(value: float | None, digits: int = 1) -> str:
    """A number with fixed digits, 163.2, or a dash for None."""
    return NONE if value is None else f"{value:.{digits}f}"


def share(part: float | None, whole: float | None) -> str:
    """A part of a whole in percent: 67.3, or a dash if it is not known."""
    return percent(part / whole) if whole and part is not None else NONE


def seconds(value: float | None) -> str:
    """Seconds with three digits: 0.0123, 7.75, 1234; a dash for None."""
    if not value:
        return NONE if value is None else "0"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 1 else f"{value:#.3g}"


def duration(value: float) -> str:
    """A duration: 35 s, 12 min, 3.4 h"""
    if value < 100:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 6000 else f"{value / 3600:.1f} h"


def gigabytes(value: float) -> str:
    """Bytes in GB, or a dash if the memory could not be measured."""
    return f"{value / 1e9:.2f}" if value else NONE


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun: 1 trial, 2 trials"""
    return f"{number} {one if number == 1 else many or one + 's'}"


def listed(texts: Iterable[object]) -> str:
    """Texts separated by commas: a, b, c"""
    return ", ".join(str(text) for text in texts)


def clean(text: str) -> str:
    """A text on one line, with a space for each control character."""
    return "".join(
        " " if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") else letter
        for letter in text
    )
