"""How files hold rules: a knob whose default has changed is always spelled out.

Traces, stores and answer files that are older than the change do not name the knob. There it has
the default of that time, so that every file means the same rule for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unmask.rules.notation import read_part
from unmask.rules.registry import show

Defaults = Mapping[str, Mapping[str, Any]]  # part -> knob -> value
FIRST: Defaults = {"swd": {"start": "single"}}  # in files that do not name the knob
TODAY: Defaults = {"swd": {"start": "uniform"}}  # in the notation
NEVER: Defaults = {"swd": {"start": None}}  # always written


def for_file(rule: object) -> str:
    """A rule for a file: `confidence | swd(5, start=uniform) | eb(0.1)`."""
    return _respelled(str(rule), TODAY, NEVER)


def from_file(text: str) -> str:
    """A rule of a file in the notation of today: `confidence | swd(5) | eb(0.1)`."""
    return _respelled(text, FIRST, TODAY)


def for_key(rule: str) -> str:
    """A rule as the first files held it: the keys of stored trials depend on this text."""
    return _respelled(rule, TODAY, FIRST)


def _respelled(text: str, absent: Defaults, left_out: Defaults) -> str:
    """Read a rule with some defaults and write it with others."""
    pieces = [piece.strip() for piece in text.split("|")]
    names = [piece.partition("(")[0].rstrip() for piece in pieces]
    if len(pieces) == 1:  # a recipe
        return text
    return " | ".join(
        _part(piece, absent[name], left_out[name]) if name in FIRST else piece
        for name, piece in zip(names, pieces, strict=True)
    )


def _part(piece: str, absent: Mapping[str, Any], left_out: Mapping[str, Any]) -> str:
    kind, knobs = read_part(piece)
    first, *others = kind.arguments
    values = {each.name: each.default for each in kind.arguments} | dict(absent) | knobs
    defaults = {each.name: each.default for each in others} | dict(left_out)
    written = [show(values[first.name])]
    written += [f"{n}={show(values[n])}" for n in defaults if values[n] != defaults[n]]
    return f"{kind.name}({', '.join(written)})"
