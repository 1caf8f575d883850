"""How stories write numbers, tokens, steps and lists of positions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby

from unmask.trace.recording.reading import Trace

LONGEST = 18  # characters of a token
MOST = 6  # names in a list


def number(value: float, digits: int = 3) -> str:
    """What a trace holds of a number, about three digits: 0.83, 1e-05, inf; - where unknown."""
    return "-" if math.isnan(value) else f"{value:.{digits}g}"


def cell(value: float) -> str:
    """The same for columns: 0.830, 2e-09."""
    if math.isnan(value):
        return "-"
    small = 0 < abs(value) < 0.0005
    return f"{value:.0e}" if small else f"{value:.3f}"


def share(value: float) -> str:
    """A probability as text has it: 0.31, 1.00, 0.0021."""
    return number(value, 2) if 0 < value < 0.01 else f"{value:.2f}"


def beside(value: float, level: float) -> str:
    """A number as it stands beside the level that it was compared with, never the same as it."""
    written = number(value)
    if written != number(level) or value == level:
        return written
    longer = number(value, 6)
    return longer if longer != number(level, 6) else f"{written} (rounded)"


def quoted(word: str, longest: int = LONGEST) -> str:
    """A token in quotes, with its spaces; nothing in it breaks a line."""
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in word)
    if len(plain) > longest:
        plain = plain[: longest - 3] + "..."
    return f"'{plain}'"


def named(trace: Trace, position: int, token: int) -> str:
    """A position and what it got: 23 ' pens'."""
    return f"{position} {quoted(trace.word(token))}"


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


def spans(numbers: Iterable[int]) -> str:
    """1, 2, 3 and 7 as `1-3, 7`."""
    ordered = sorted(numbers)
    runs = groupby(enumerate(ordered), key=lambda pair: pair[1] - pair[0])
    ends = [[n for _, n in run] for _, run in runs]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in ends)


def steps(numbers: Sequence[int]) -> str:
    """`step 4`, or `steps 1-3, 7`."""
    return f"step{'s' if len(numbers) > 1 else ''} {spans(numbers)}"


def listed(names: Sequence[str], most: int = MOST) -> str:
    """All names, or the first of them and how many more."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
