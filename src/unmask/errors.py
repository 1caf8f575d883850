"""Errors for the caller, in one line: what was given, what is allowed, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UnmaskError(ValueError):
    """An error that the caller can fix; the command line prints it without a traceback."""


class RuleError(UnmaskError):
    """A rule that cannot be read, or parts that do not fit together."""


class PartError(RuleError):
    """A part of the user's own that raised something; its cause is that exception."""


class RequestError(UnmaskError):
    """A canvas or setting that cannot be decoded; raised before the first forward pass."""


class LanguageError(RequestError):
    """A language that is not supported, or that holds no answer for the canvas."""


class ModelError(UnmaskError):
    """A model that cannot be loaded, or whose output is invalid, such as NaN."""


class LabError(UnmaskError):
    """A run, store or comparison of the lab that is not possible."""


class UnknownName(RuleError):  # noqa: N818  (reads as the sentence it prints)
    """A name that is not in its table; suggests the nearest name."""

    def __init__(
        self, kind: str, name: str, known: Iterable[str], meant: str | None = None
    ) -> None:
        names = list(known)
        hint = did_you_mean(meant or name, names) if isinstance(name, str) else ""
        super().__init__(
            f"unknown {kind} {shown(name, 100)}{hint or ';'} known: {', '.join(names)}"
        )


def shown(value: object, most: int = 200) -> str:
    """What was given, for a message: its repr in one line, cut if it is very long."""
    try:
        text = " ".join(repr(value).split("\n"))
    except Exception:  # such as a number with more digits than Python writes
        text = f"a value of type {type(value).__name__} that cannot be shown"
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """`; did you mean 'x'?` with the nearest known name; empty if none is near."""
    near = get_close_matches(str(name)[:100], list(known), n=1, cutoff=cutoff)
    return f"; did you mean {near[0]!r}?" if near else ""


def require_whole(name: str, number: int, least: int) -> None:
    """Raise unless an option is a whole number from `least` to 2**20."""
    whole = isinstance(number, int) and not isinstance(number, bool)
    require(whole and least <= number, f"{name} must be >= {least}, got {number}")
    require(number <= 2**20, f"{name} must be <= {2**20}, got {number}")


def require(condition: bool, message: str) -> None:
    """Raise `RuleError(message)` unless the condition holds; parts check their options with it."""
    if not condition:
        raise RuleError(message)
