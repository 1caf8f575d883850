"""Regular expressions of JSON strings: by length and by format."""

from __future__ import annotations

from typing import Any

from unmask.errors import LanguageError, shown
from unmask.languages.patterns import CHARACTER, SIZES, matching, pieces_of, widths

STRING = f'"{CHARACTER}*"'
MOST_CHARACTERS = 1000  # of a string whose maxLength is larger

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
_SECONDS = "(?:[0-9]{1,4}S)"
_MINUTES = f"(?:[0-9]{{1,4}}M{_SECONDS}?)"
_CLOCK = f"(?:[0-9]{{1,4}}H{_MINUTES}?|{_MINUTES}|{_SECONDS})"
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{1,4}}"
_WORD = "[a-zA-Z0-9_+-]{1,20}"
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-%s-%s-[0-9a-f]{12}"
FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "duration": f"P(?:[0-9]{{1,4}}D(?:T{_CLOCK})?|T{_CLOCK})",
    "uuid": _UUID % ("[0-9a-f]{4}", "[0-9a-f]{4}"),
    **{f"uuid{v}": _UUID % (f"{v}[0-9a-f]{{3}}", "[89ab][0-9a-f]{3}") for v in range(1, 9)},
    "email": rf"{_WORD}(?:\.{_WORD}){{0,2}}@{_HOST}",
    "hostname": _HOST,
    "ipv4": rf"{_BYTE}(?:\.{_BYTE}){{3}}",
    "ipv6": "[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){7}",
    "uri": rf"https?://{_HOST}(?::[1-9][0-9]{{0,3}})?(?:/[a-zA-Z0-9._~-]{{0,40}}){{0,4}}",
}
ANY_TEXT = ("password", "path", "file-path", "directory-path", "binary")  # formats of every text


def string(schema: Any) -> str | None:
    """A string by its pattern, its format and its length; None if there is none."""
    least, most = int(schema.get("minLength", 0)), schema.get("maxLength")
    most = None if most is None else int(most)
    if most is not None and most < least:
        return None
    form = None if schema.get("format") in ANY_TEXT else schema.get("format")
    if form is not None and form not in FORMATS:
        known = ", ".join([*FORMATS, *ANY_TEXT])
        raise LanguageError(f"unknown format {shown(form)} in the schema; known: {known}")
    if form is not None and "pattern" in schema:
        raise LanguageError("a string takes pattern or format, not both; leave one of them out")
    if form is not None:
        _check_lengths(f"format {form}", widths(pieces_of(FORMATS[form])), least, most)
        return f'"{FORMATS[form]}"'
    if "pattern" in schema:
        inner, size = matching(schema["pattern"], least, most)
        _check_lengths("the pattern", size, least, most)
        return f'"{inner}"'
    if most is not None:
        most = min(most, max(least, MOST_CHARACTERS))
    count = f"{{{least},{'' if most is None else most}}}" if least or most is not None else "*"
    return f'"{CHARACTER}{count}"'


def _check_lengths(name: str, size: SIZES, least: int, most: int | None) -> None:
    """Raise unless every text of these sizes has an allowed length."""
    shortest, longest = size
    word = "minLength" if shortest < least else "maxLength"
    if shortest < least or (most is not None and (longest is None or longest > most)):
        raise LanguageError(
            f"{word} is not supported beside {name}, which has texts of other lengths; leave it "
            "out, or write the length into a pattern"
        )
