"""Patterns of JSON Schema as expressions of what stands between the quotes of a JSON string."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Sequence

from unmask.errors import LanguageError, shown

UNSAFE = r'"\\\x00-\x1F\x7F'  # what a JSON string escapes, inside a class
CHARACTER = rf'(?:[^{UNSAFE}]|\\["\\/bfnrt])'
SIZES = tuple[int, int | None]  # the fewest and the most characters; None: no end

_PIECE = re.compile(
    r"""\[\^?\]?(?:\\.|[^\]\\]){0,1000}\]  # a class
      | \\x[0-9a-fA-F]{2}              # a character by its number
      | \\u[0-9a-fA-F]{4}
      | \\.                            # an escape
      | \(\?<?[=!]                     # what looks around
      | \(\?(?:P?<\w+>|[a-z]*:)        # a group with a name, or with none
      | \{[0-9]*,?[0-9]*\}             # a repetition
      | .""",
    re.VERBOSE | re.DOTALL,
)
_REPEATS = re.compile(r"[*+?]|\{([0-9]+)(,?)([0-9]*)\}")
_CONTROL = {r"\n": "\n", r"\t": "\t", r"\r": "\r", r"\f": "\f"}


def escaped(text: str) -> str:
    """A text as an expression that matches it alone."""
    return re.sub(r"([][\\.^$*+?{}()|&~#-])", r"\\\1", text)


def pieces_of(pattern: str) -> list[str]:
    """The pieces of a pattern: classes, escapes, repetitions, and single characters."""
    return _PIECE.findall(pattern)


def matching(pattern: str, least: int = 0, most: int | None = None) -> tuple[str, SIZES]:
    """What a JSON string holds if a pattern is found in it, and its lengths in characters.

    As JSON Schema has it, a pattern may match anywhere, unless ^ and $ tie it to the ends. The
    lengths `least` and `most` are kept where one piece repeats; other patterns have their own.
    """
    texts, sizes = [], []
    for pieces in _alternatives(pattern):
        inner, begins, ends = _untied(pieces)
        if begins and ends:
            inner = _resized(inner, least, most)
        text, anything = "".join(map(_safe, inner)), f"{CHARACTER}*"
        texts.append(f"{'' if begins else anything}(?:{text}){'' if ends else anything}")
        shortest, longest = widths(inner)
        sizes.append((shortest, longest if begins and ends else None))
    return f"(?:{'|'.join(texts)})", _either([[size] for size in sizes])


def whole(expression: str) -> str:
    """An expression of whole texts, without the ^ and $ at the ends of its alternatives.

    \\d is 0 to 9; the library would take the digits of every script.
    """
    untied = [_untied(pieces)[0] for pieces in _alternatives(expression)]
    return "|".join("".join(map(_with_plain_digits, inner)) for inner in untied)


def _with_plain_digits(piece: str) -> str:
    digits = "0-9" if piece.startswith("[") else "[0-9]"
    return re.sub(r"\\.", lambda match: digits if match[0] == r"\d" else match[0], piece)


def _alternatives(pattern: str) -> list[list[str]]:
    """The pieces of each alternative that stands in no group."""
    rows, depth = list[list[str]]([[]]), 0
    pieces = pieces_of(pattern)
    widths(pieces)  # raises if a group has no end
    for piece in pieces:
        depth += piece.startswith("(") - (piece == ")")
        if piece == "|" and not depth:
            rows.append([])
        else:
            rows[-1].append(piece)
    return rows


def _untied(pieces: list[str]) -> tuple[list[str], bool, bool]:
    """An alternative without its ^ and $, and whether it has them."""
    begins, ends = pieces[:1] == ["^"], pieces[-1:] == ["$"]
    return pieces[begins : len(pieces) - ends], begins, ends


def widths(pieces: Sequence[str]) -> SIZES:
    """The fewest and the most characters that an expression matches."""
    groups: list[list[list[SIZES]]] = [[[]]]  # the alternatives of each open group
    for piece in pieces:
        if piece.startswith("("):
            groups.append([[]])
        elif piece == ")":
            inner = groups.pop()
            if not groups:
                break
            groups[-1][-1].append(_either(inner))
        elif piece == "|":
            groups[-1].append([])
        elif _REPEATS.fullmatch(piece):
            row = groups[-1][-1]
            if row:
                row[-1] = _repeated(row[-1], piece)
        else:
            groups[-1][-1].append((1, 1))
    if len(groups) != 1:
        raise LanguageError("an expression must close every ( that it opens, and no other")
    return _either(groups[0])


def _either(alternatives: list[list[SIZES]]) -> SIZES:
    sums = [(sum(low for low, _ in row), _sum([high for _, high in row])) for row in alternatives]
    highs = [high for _, high in sums]
    return min(low for low, _ in sums), None if None in highs else max(
        filter(None, highs), default=0
    )


def _sum(values: list[int | None]) -> int | None:
    return None if None in values else sum(value or 0 for value in values)


def _repeated(size: SIZES, piece: str) -> SIZES:
    least, most = _counts(piece)
    longest = None if most is None or size[1] is None else most * size[1]
    return least * size[0], 0 if size[1] == 0 else longest


def _counts(piece: str) -> SIZES:
    """How often a repetition repeats."""
    if piece in "*+?":
        return (1 if piece == "+" else 0), (1 if piece == "?" else None)
    low, comma, high = _REPEATS.fullmatch(piece).groups()  # type: ignore[union-attr]
    return int(low), int(high) if high else None if comma else int(low)


def _resized(pieces: list[str], least: int, most: int | None) -> list[str]:
    """One piece that repeats, as often as lengths allow; other pieces as they are."""
    if len(pieces) != 2 or not _REPEATS.fullmatch(pieces[1]) or pieces[0] in ("(", ")", "|"):
        return pieces
    low, high = _counts(pieces[1])
    low = max(low, least)
    highs = [each for each in (high, most) if each is not None]
    if highs and min(highs) < low:
        return pieces
    return [pieces[0], f"{{{low},{min(highs) if highs else ''}}}"]


def _safe(piece: str) -> str:
    """One piece of a pattern, for characters that a JSON string holds as they are."""
    if piece in _CONTROL or re.match(r"\\[xu].", piece):
        character = _CONTROL.get(piece) or chr(int(piece[2:], 16))
        return _literal(character)
    if piece in ("^", "$", "[") or re.fullmatch(r"\\[^\WdDsSwW_]|\(\?<?[=!]", piece):
        raise LanguageError(
            f"{shown(piece)} inside a pattern is not supported; write the pattern without it"
        )
    if piece == ".":
        return f"[^{UNSAFE}]"
    if re.fullmatch(r"\\[DSWsw]", piece):
        piece = f"[{piece}]"
    if piece.startswith("["):
        return _class(piece)
    if piece == r"\d":
        return "[0-9]"
    if re.fullmatch(r"\\[^\w]", piece):
        return _literal(piece[1])
    return _literal(piece) if piece == '"' or not piece.isprintable() else piece


def _literal(character: str) -> str:
    """One character, as JSON writes it in a string."""
    return f"(?:{escaped(json.dumps(character, ensure_ascii=False)[1:-1])})"


def _class(piece: str) -> str:
    """A class in the spelling of the library, in which [, &&, ~~ and -- mean more.

    A quote and a backslash are kept, as JSON writes them, where the class names what it holds.
    """
    named = not piece.startswith("[^")
    short = {r"\d": "0-9", r"\w": "0-9A-Za-z_"} if named else {}
    special = r"\\.|\[|&(?=&)|~(?=~)|(?<=-)-"

    def spelled(match: re.Match[str]) -> str:
        text = match[0]
        return short.get(text, text) if text.startswith("\\") else f"\\{text}"

    text = f"[[{re.sub(special, spelled, piece[1:-1])}]&&[^{UNSAFE}]]"
    quoted = [_literal(each) for each in '"\\' if named and _holds(piece, each)]
    return f"(?:{'|'.join([text, *quoted])})" if quoted else text


def _holds(piece: str, character: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return bool(re.fullmatch(piece, character))
    except re.error:
        return False
