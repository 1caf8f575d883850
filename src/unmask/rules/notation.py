"""The rule notation: parts separated by bars, knobs in parentheses, sweeps in braces."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any, Literal, get_args, get_origin

from unmask.errors import RuleError, UnknownName, did_you_mean, shown
from unmask.rules.recipes import RECIPES
from unmask.rules.registry import STAGES, Argument, Kind, kind_named, kinds

MOST_RULES = 10_000  # that one text with braces may stand for
_PART = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:\((.*)\))?\s*$", re.DOTALL)
_BRACES = re.compile(r"\{([^{}]*)\}")
_COMMA = re.compile(r"\([^()]*\)|(,)")  # its group is a comma outside parentheses


def parse(text: str) -> list[Any]:
    """The parts of one rule, made and checked, in the order they were written."""
    return [kind.make(**knobs) for kind, knobs in read(text)]


def read(text: str) -> list[tuple[Kind, dict[str, Any]]]:
    """The parts of one rule with their knobs; no part is made or checked yet."""
    if "{" in text or "}" in text:
        count = len(expand(text))
        raise RuleError(f"{shown(text)} is a sweep of {count} rules; give one rule")
    parts, latest, known = [], 0, [kind.name for kind in kinds()]
    for piece in text.split("|"):
        if piece.strip() == text.strip() and (name := _matched(piece, text)[1]) not in known:
            raise UnknownName("rule or recipe", name, [*RECIPES, *known])
        kind, knobs = read_part(piece, text)
        stage = STAGES.index(kind.stage)
        if stage < latest:
            raise RuleError(
                f"{kind.name!r} stands too late in {shown(text)}; write the parts in the order "
                "window | credit | score | modulators | candidates | selection | limits | revoke"
            )
        latest = stage
        parts.append((kind, knobs))
    return parts


def expand(text: str) -> list[str]:
    """Every rule that a text with braces stands for: `{0,1}` and `{a,b}` give four."""
    pieces = _BRACES.split(text)
    frames, choices = pieces[::2], [_choices(group) for group in pieces[1::2]]
    if any("" in options for options in choices):
        raise RuleError(f"an empty choice in the braces of {shown(text)}; write {{0,1,5}}")
    if any("{" in frame or "}" in frame for frame in frames):
        raise RuleError(f"unbalanced or nested braces in {shown(text)}")
    count = math.prod(map(len, choices))
    if count > MOST_RULES:
        raise RuleError(
            f"{text[:60]!r}... stands for {count} rules; braces may stand for {MOST_RULES}"
        )
    lines = []
    for picked in itertools.product(*choices):
        gaps = [*picked, ""]
        lines.append("".join(itertools.chain(*zip(frames, gaps, strict=True))))
    return lines


def _choices(group: str) -> list[str]:
    """The choices between two braces; a comma in parentheses belongs to its part."""
    commas = [match.start() for match in _COMMA.finditer(group) if match[1]]
    edges = itertools.pairwise([-1, *commas, len(group)])
    return [group[before + 1 : after].strip() for before, after in edges]


def read_part(piece: str, text: str = "") -> tuple[Kind, dict[str, Any]]:
    """One part of a rule, with the knobs that are written; `text` is the rule, for messages."""
    match = _matched(piece, text or piece)
    kind = kind_named(match[1])
    return kind, _parse_knobs(kind, match[2] or "")


def _matched(piece: str, text: str) -> re.Match[str]:
    if match := _PART.match(piece):
        return match
    what = f"cannot read {shown(piece.strip())}" if piece.strip() else "an empty part"
    raise RuleError(f"{what} in {shown(text)}; a part is a name, or name(value, key=value)")


def _parse_knobs(kind: Kind, inside: str) -> dict[str, Any]:
    arguments = {argument.name: argument for argument in kind.arguments}
    knobs: dict[str, Any] = {}
    pieces = [piece.strip() for piece in inside.split(",")] if inside.strip() else []
    by_name = False
    for place, piece in enumerate(pieces):
        name, equals, written = (word.strip() for word in piece.partition("="))
        if not equals:
            if by_name or place >= len(arguments):
                raise RuleError(_too_many(kind, piece, place))
            name, written = list(arguments)[place], piece
        elif name not in arguments:
            raise RuleError(_unknown_knob(kind, name))
        by_name = bool(equals)
        if name in knobs:
            raise RuleError(f"{kind.name}: {name} is given twice")
        knobs[name] = _read(kind, arguments[name], written)
    return knobs


def _read(kind: Kind, argument: Argument, written: str) -> Any:
    """A knob's value, read by the knob's type."""
    name = f"{kind.name}: {argument.name}"
    if get_origin(argument.kind) is Literal:
        words = get_args(argument.kind)
        if written not in words:
            hint = did_you_mean(written, words)
            raise RuleError(f"{name} must be one of {', '.join(words)}, got {written!r}{hint}")
        return written
    if argument.kind is bool:
        if written not in ("yes", "no"):
            raise RuleError(f"{name} must be yes or no, got {written!r}")
        return written == "yes"
    if argument.kind is str:
        if not written:
            raise RuleError(f"{name} must not be empty")
        return written
    try:
        return int(written) if argument.kind is int else float(written)
    except ValueError:
        number = "a whole number" if argument.kind is int else "a number"
        raise RuleError(f"{name} must be {number}, got {written!r}") from None


def _too_many(kind: Kind, piece: str, place: int) -> str:
    if not kind.arguments:
        return f"{kind.name} takes no argument, got {piece!r}"
    if place >= len(kind.arguments):
        return f"{kind.name} takes at most {len(kind.arguments)} arguments: {kind.usage}"
    return f"{kind.name}: the plain value {piece!r} must stand before key=value: {kind.usage}"


def _unknown_knob(kind: Kind, name: str) -> str:
    known = [argument.name for argument in kind.arguments]
    hint = did_you_mean(name, known) or ";"
    return f"{kind.name} has no argument {name!r}{hint} arguments: {', '.join(known) or 'none'}"
