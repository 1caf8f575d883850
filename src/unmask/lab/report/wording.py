"""Numbers as the report writes them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from unmask.lab.stats import Interval

NONE = "–"


def percent(share: float) -> str:
    """67.3"""
    return f"{100 * share:.1f}"


def span(interval: Interval) -> str:
    """Of a share, in percent: [64.7, 69.8]"""
    return f"[{percent(interval.low)}, {percent(interval.high)}]"


def points(difference: float) -> str:
    """A difference of shares: +35.8"""
    return f"{round(100 * difference, 1) + 0.0:+.1f}"  # + 0.0: never -0.0


def points_span(interval: Interval) -> str:
    """[+33.1, +38.4]"""
    return f"[{points(interval.low)}, {points(interval.high)}]"


def p_value(p: float) -> str:
    """p 0.031"""
    return "p <0.001" if p < 0.001 else f"p {p:.3f}"


def number(value: float | None, digits: int = 1) -> str:
    """163.2, or a dash where there is none."""
    return NONE if value is None else f"{value:.{digits}f}"


def share(part: float | None, whole: float | None) -> str:
    """Of a whole, in percent: 67.3, or a dash where it is not known."""
    return percent(part / whole) if whole and part is not None else NONE


def seconds(value: float | None) -> str:
    """Three figures: 0.0123, 7.75, 1234; 0 is nothing at all."""
    if not value:
        return NONE if value is None else "0"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 1 else f"{value:#.3g}"


def duration(value: float) -> str:
    """35 s, 12 min, 3.4 h"""
    if value < 100:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 6000 else f"{value / 3600:.1f} h"


def gigabytes(value: float) -> str:
    """Of bytes; a dash where memory could not be read."""
    return f"{value / 1e9:.2f}" if value else NONE


def counted(number: int, one: str, many: str = "") -> str:
    """1 trial, 2 trials"""
    return f"{number} {one if number == 1 else many or one + 's'}"


def listed(texts: Iterable[object]) -> str:
    """a, b, c"""
    return ", ".join(str(text) for text in texts)


def clean(text: str) -> str:
    """On one line and without control characters, which names from elsewhere may hold."""
    return "".join(
        " " if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") else letter
        for letter in text
    )
