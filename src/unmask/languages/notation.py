"""The notation of a language: regex:TEXT, choice:a,b,c, schema:JSON or a file, or json."""

from __future__ import annotations

import json
from collections.abc import Callable

from unmask.errors import RequestError, shown
from unmask.languages.schema import json_regex, schema_regex
from unmask.languages.strings import escaped
from unmask.models.untrusted import check_whole, read_text

LONGEST = 1 << 22  # bytes of a schema
FORMS = "regex:TEXT, choice:a,b,c, schema:JSON or json"


def regex_of(language: str) -> str:
    """The regular expression of a language."""
    kind, colon, text = language.partition(":")
    if language == "json":
        return json_regex()
    if not colon or kind not in _READERS or not text:
        raise RequestError(f"language must be {FORMS}, got {shown(language)}")
    expression = _READERS[kind](text)
    check_whole(expression)
    return expression


def choice(texts: list[str]) -> str:
    """The notation of a choice between texts."""
    return f"choice:{json.dumps(texts, ensure_ascii=False)}"


def schema_file(path: str) -> str:
    """The notation of the schema in a file."""
    return f"schema:{read_text(path, LONGEST)}"


def _choices(text: str) -> str:
    texts = text.split(",")
    if text.startswith("["):
        try:
            texts = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RequestError(f"choice is not a JSON list: {error}") from None
    if not all(isinstance(each, str) and each for each in texts) or not texts:
        raise RequestError(f"choice takes texts that are not empty, got {shown(text)}")
    return "|".join(map(escaped, texts))


_READERS: dict[str, Callable[[str], str]] = {
    "regex": lambda text: text,
    "choice": _choices,
    "schema": schema_regex,
}
