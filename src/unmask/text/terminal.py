"""Colours and columns for terminals."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from itertools import zip_longest

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def has_colour(choice: str = "auto") -> bool:
    """Whether to use colours: `always`, `never`, or `auto` for a terminal without NO_COLOR."""
    if choice == "auto":
        return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return choice == "always"


class Painter:
    """Paints text, or leaves it plain."""

    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def __call__(self, text: str, *styles: str) -> str:
        if not self.colour or not styles:
            return text
        return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"


def visible_width(text: str) -> int:
    """The number of columns of a text, without escape sequences."""
    return len(_ANSI.sub("", text))


def side_by_side(left: Sequence[str], right: Sequence[str], width: int, gap: str = "  |  ") -> str:
    """Two columns of lines; one below the other if the terminal is too narrow."""
    column = max((visible_width(line) for line in left), default=0)
    needed = column + len(gap) + max((visible_width(line) for line in right), default=0)
    if needed > width:
        return "\n".join([*left, "", *right])
    rows = zip_longest(left, right, fillvalue="")
    return "\n".join(a + " " * (column - visible_width(a)) + gap + b for a, b in rows)
