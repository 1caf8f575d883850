"""Formats numbers, tokens, steps and lists of positions for stories."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby

from unmask.rules.words import number
from unmask.trace.recording.reading import Trace

LONGEST = 18  # characters of a token
MOST = 6  # names in a list


def cell(value: float) -> str:
    """A number of a table: 0.830, 2e-09; - if unknown."""
    if math.isnan(value):
        return "-"
    small = 0 < abs(value) < 0.0005
    return f"{value:.0e}" if small else f"{value:.3f}"


def share(value: float) -> str:
    """A probability in a sentence: 0.31, 1.00, 0.0021."""
    return number(value, 2) if 0 < value < 0.01 else f"{value:.2f}"


def writer_of_fills(trace: Trace) -> str:
    """Who wrote what the selection did not choose."""
    eos = trace.settings.eos
    if eos in ("stop", "block", "fill"):
        return f"the EOS policy {eos!r}"
    return "the rule, outside its selection,"


def quoted(word: str, longest: int = LONGEST) -> str:
    """A token in quotes, with its spaces and without line breaks."""
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in word)
    if len(plain) > longest:
        plain = plain[: longest - 3] + "..."
    return f"'{plain}'"


def named(trace: Trace, position: int, token: int) -> str:
    """A position and its token: 23 ' pens'."""
    return f"{position} {quoted(trace.word(token))}"


def spans(numbers: Iterable[int]) -> str:
    """Numbers as ranges: `1-3, 7`."""
    ordered = sorted(numbers)
    runs = groupby(enumerate(ordered), key=lambda pair: pair[1] - pair[0])
    ends = [[n for _, n in run] for _, run in runs]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in ends)


def steps(numbers: Sequence[int]) -> str:
    """`step 4`, or `steps 1-3, 7`."""
    return f"step{'s' if len(numbers) > 1 else ''} {spans(numbers)}"


def listed(names: Sequence[str], most: int = MOST) -> str:
    """All names, or the first ones and the number of the others."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
