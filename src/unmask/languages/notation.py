"""The notation of a language: regex:TEXT, choice:a,b,c, schema:JSON or a file, or json."""

from __future__ import annotations

import json
from collections.abc import Callable

from unmask.errors import LanguageError, shown
from unmask.languages.patterns import escaped, whole
from unmask.languages.schema import json_regex, schema_regex
from unmask.models.untrusted import read_text

LONGEST = 1 << 22  # bytes of a schema
BYTE_ORDER_MARK = "\ufeff"
FORMS = "regex:TEXT, choice:a,b,c, schema:JSON or json"


def regex_of(language: str) -> str:
    """The regular expression of a language."""
    kind, colon, text = language.partition(":")
    if language == "json":
        return json_regex()
    if not colon or kind not in _READERS or not text:
        raise LanguageError(f"language must be {FORMS}, got {shown(language)}")
    expression = _READERS[kind](text)
    if any("\ud800" <= letter <= "\udfff" for letter in expression):
        raise LanguageError(f"{shown(language)} holds half of a character; write whole ones")
    return expression


def choice(texts: list[str]) -> str:
    """The notation of a choice between texts."""
    return f"choice:{json.dumps(texts, ensure_ascii=False)}"


def schema_file(path: str) -> str:
    """The notation of the schema in a file."""
    text = read_text(path, LONGEST, LanguageError)
    return f"schema:{text.removeprefix(BYTE_ORDER_MARK)}"


def _choices(text: str) -> str:
    texts = text.split(",")
    if text.startswith("["):
        try:
            texts = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise LanguageError(f"choice is not a JSON list: {error}") from None
    if not all(isinstance(each, str) and each for each in texts) or not texts:
        raise LanguageError(f"choice takes texts that are not empty, got {shown(text)}")
    return "|".join(map(escaped, texts))


_READERS: dict[str, Callable[[str], str]] = {
    "regex": whole,
    "choice": _choices,
    "schema": schema_regex,
}
