"""How the sentences of parts and stories write numbers."""

from __future__ import annotations

import math

KL_WORDS = {
    "prev_cur": "KL(previous || current)",
    "cur_prev": "KL(current || previous)",
    "js": "JS(previous, current)",
    "tv": "TV(previous, current)",
}


def number(value: float, digits: int = 3) -> str:
    """A number with three digits: 0.83, 1e-05, inf; - if it is unknown."""
    return "-" if math.isnan(value) else f"{value:.{digits}g}"


def beside(value: float, level: float) -> str:
    """A number with as many digits as it takes to tell it from the level it was compared with."""
    written = number(value)
    if written != number(level) or value == level:
        return written
    longer = number(value, 6)
    return longer if longer != number(level, 6) else f"{written} (rounded)"


def ordinal(place: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 22nd."""
    teens = place % 100 in (11, 12, 13)
    return f"{place}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(place % 10, 'th')}"


def counted(count: int, noun: str) -> str:
    """1 position, 2 positions."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def times(count: int) -> str:
    """once, twice, 3 times."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
