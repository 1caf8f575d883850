"""The keywords of a JSON Schema that are supported, and the values that each of them takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from unmask.errors import LanguageError, shown

NOTES = {
    "title", "description", "default", "example", "examples", "$schema", "$id", "$comment", "$defs",
    "definitions", "deprecated", "readOnly", "writeOnly", "name", "strict", "nullable",
    "discriminator", "contentEncoding", "contentMediaType",
}  # fmt: skip
KEYWORDS = {
    "string": {"minLength", "maxLength", "pattern", "format"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "boolean": set[str](),
    "null": set[str](),
    "array": {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"},
    "object": {"properties", "required", "additionalProperties"},
}
KIND_OF = {keyword: kind for kind, words in KEYWORDS.items() for keyword in words}


def is_note(word: str) -> bool:
    """Whether a keyword says nothing about which values are valid."""
    return word in NOTES or word.startswith("x-")


def check_schema(schema: Any) -> None:
    """Raise for a keyword that is not supported, or that has a wrong value."""
    if not isinstance(schema, Mapping):
        raise LanguageError(f"a schema is a JSON object, got {shown(schema)}")
    for word, value in schema.items():
        if is_note(word):
            continue
        if word not in _VALUES:
            raise LanguageError(f"{word} is not supported; leave it out of the schema")
        allowed, words = _VALUES[word]
        if not allowed(value):
            raise LanguageError(f"{word} must be {words}, got {shown(value)}")


def kinds_of(schema: Mapping[str, Any]) -> list[str]:
    """The types of a schema; without any, those that its keywords speak of."""
    kinds = schema.get("type", sorted({KIND_OF[word] for word in schema if word in KIND_OF}))
    return [kinds] if isinstance(kinds, str) else kinds


def kind_of(value: Any) -> str:
    """The type of a JSON value; an integer is one without a fraction."""
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    kinds = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


def is_of(kind: str, kinds: list[str]) -> bool:
    """Whether values of a type are of one of these types."""
    return kind in kinds or (kind == "integer" and "number" in kinds)


def _is_number(value: Any) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole or (isinstance(value, float) and isfinite(value))


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and int(value) == value


def _is_list_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(isinstance(each, kind) for each in value)


def _is_type(value: Any) -> bool:
    return isinstance(value, str) or (bool(value) and _is_list_of(str)(value))


_NUMBER = (_is_number, "a number")
_COUNT = (_is_count, "a whole number >= 0")
_SCHEMAS = (lambda value: isinstance(value, list) and bool(value), "a list of schemas")
_SCHEMA = (lambda value: isinstance(value, bool | dict), "a schema")
_TEXT = (lambda value: isinstance(value, str), "a text")
_VALUES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "type": (_is_type, "a type or a list of types"),
    "enum": (lambda value: isinstance(value, list), "a list"),
    "const": (lambda value: True, "a value"),
    **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), _SCHEMAS),
    **dict.fromkeys(("$ref", "pattern", "format"), _TEXT),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _COUNT),
    **dict.fromkeys(sorted(KEYWORDS["number"]), _NUMBER),
    **dict.fromkeys(("items", "additionalProperties"), _SCHEMA),
    "uniqueItems": (lambda value: isinstance(value, bool), "true or false"),
    "properties": (lambda value: isinstance(value, dict), "an object of schemas"),
    "required": (_is_list_of(str), "a list of texts"),
}
