"""Regular expressions of JSON strings: by length, by pattern, by format."""

from __future__ import annotations

import re

from unmask.errors import RequestError, shown

UNSAFE = r'"\\\x00-\x1F\x7F'  # what a JSON string escapes, inside a class
CHARACTER = rf'(?:[^{UNSAFE}]|\\["\\/bfnrt])'
STRING = f'"{CHARACTER}*"'

_YEAR = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"  # there is no year 0
_DAY = r"(?:0[1-9]|[12][0-9]"
_DATE = (
    rf"{_YEAR}-(?:(?:0[13578]|1[02])-{_DAY}|3[01])|(?:0[469]|11)-{_DAY}|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_TIME = (
    r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
    r"(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])"
)
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{1,4}}"
FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "uuid": "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "email": rf"[a-zA-Z0-9_+-]+(?:\.[a-zA-Z0-9_+-]+){{0,4}}@{_HOST}",
    "hostname": _HOST,
    "ipv4": rf"{_BYTE}(?:\.{_BYTE}){{3}}",
    "uri": rf"https?://{_HOST}(?::[1-9][0-9]{{0,3}})?(?:/[a-zA-Z0-9._~%-]*)*",
}

_PIECE = re.compile(
    r"""\[\^?\]?(?:\\.|[^\]\\])*\]  # a class
      | \\.                         # an escape
      | \(\?<?[=!]                  # what looks around
      | .""",
    re.VERBOSE | re.DOTALL,
)


def escaped(text: str) -> str:
    """A text as an expression that matches it alone."""
    return re.sub(r"([][\\.^$*+?{}()|&~#-])", r"\\\1", text)


def sized(least: int, most: int | None) -> str:
    """A JSON string of so many characters."""
    if most is not None and most < least:
        raise RequestError(f"maxLength {most} is below minLength {least}")
    count = f"{{{least},{'' if most is None else most}}}" if least or most is not None else "*"
    return f'"{CHARACTER}{count}"'


def matching(pattern: str) -> str:
    """What a JSON string holds if a pattern is found in it, without characters that need escapes.

    As JSON Schema has it, a pattern may match anywhere, unless ^ and $ tie it to the ends.
    """
    pieces = _PIECE.findall(pattern)
    begins, ends = pieces[:1] == ["^"], pieces[-1:] == ["$"]
    inner = pieces[1 if begins else 0 : len(pieces) - 1 if ends else len(pieces)]
    text = "".join(map(_safe, inner))
    before, after = "" if begins else f"{CHARACTER}*", "" if ends else f"{CHARACTER}*"
    return f"{before}(?:{text}){after}"


def _safe(piece: str) -> str:
    """One piece of a pattern, for characters that a JSON string holds as they are."""
    if piece in ("^", "$") or re.fullmatch(r"\\[^\WdDsSwW_]|\(\?<?[=!]", piece):
        raise RequestError(
            f"{shown(piece)} inside a pattern is not supported; write the pattern without it"
        )
    if piece == ".":
        return f"[^{UNSAFE}]"
    if piece.startswith("[") or re.fullmatch(r"\\[DSWsw]", piece):
        ascii_only = piece.replace(r"\d", "0-9").replace(r"\w", "0-9A-Za-z_")
        return f"[{ascii_only}&&[^{UNSAFE}]]"
    if piece in ('"', r"\\", r"\""):
        return rf"\\\{piece[-1]}"  # as JSON writes it
    return {r"\d": "[0-9]", r"\/": "/"}.get(piece, piece)
