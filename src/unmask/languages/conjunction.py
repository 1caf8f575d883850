"""Schemas that must hold together, and schemas that exclude one another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from unmask.errors import LanguageError
from unmask.languages.keywords import check_schema, is_note, is_of, kind_of, kinds_of

_LARGER = {"minimum", "exclusiveMinimum", "minLength", "minItems"}
_SMALLER = {"maximum", "exclusiveMaximum", "maxLength", "maxItems"}
_LATER = {"$ref", "properties", "additionalProperties"}  # joined after all others
_NONE = object()  # no value at all


def both(first: Any, second: Any) -> Any:
    """A schema of the values that fit two schemas."""
    if isinstance(first, bool) or isinstance(second, bool):
        return False if first is False or second is False else second if first is True else first
    check_schema(first)
    check_schema(second)
    first, second = without_notes(first), without_notes(second)
    joined = {**first, **second}
    for word in [word for word in first if word in second and word not in _LATER]:
        if key(first[word]) != key(second[word]):
            joined[word] = _joined(word, first[word], second[word])
    if joined.get("type") == [] or ("const" in joined and joined["const"] is _NONE):
        return False
    if "$ref" in first and joined["$ref"] != first["$ref"]:
        joined["allOf"] = [*joined.get("allOf", []), {"$ref": first["$ref"]}]
    if ("prefixItems" in first) != ("prefixItems" in second):
        other = second if "prefixItems" in first else first
        if "items" in other:
            raise _not_joined("prefixItems")
    if _has_members(first) and _has_members(second):
        joined |= _members(first, second)
    return joined


def without_notes(schema: Mapping[str, Any], *words: str) -> dict[str, Any]:
    """A schema without what says nothing about values, and without these keywords."""
    return {
        word: value for word, value in schema.items() if not is_note(word) and word not in words
    }


def excluding(first: Any, second: Any) -> bool:
    """Whether no value that is written for one schema fits the other, as far as can be seen."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is False or second is False
    if (known := values_of(first)) is not None:
        others = values_of(second)
        if others is not None:
            return not {key(value) for value in known} & {key(value) for value in others}
        return not any(is_of(kind_of(value), kinds_of(second)) for value in known) and (
            "type" in second
        )
    if values_of(second) is not None:
        return excluding(second, first)
    if kinds_of(first) == kinds_of(second) == ["object"]:
        return any(_tell_apart(name, first, second) for name in first.get("properties", {}))
    if "type" not in first or "type" not in second:
        return False
    pairs = ((first, second), (second, first))
    return not any(is_of(kind, kinds_of(other)) for one, other in pairs for kind in kinds_of(one))


def values_of(schema: Any) -> list[Any] | None:
    """The values that a schema lists; None if it lists none."""
    if not isinstance(schema, Mapping):
        return None
    listed = [schema["const"]] if "const" in schema else schema.get("enum")
    if "const" in schema and "enum" in schema:
        allowed = {key(value) for value in schema["enum"]}
        return [value for value in listed or [] if key(value) in allowed]
    return listed


def key(value: Any) -> str:
    """A text that equal JSON values share: 1 and 1.0 are equal, 1 and true are not."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _tell_apart(name: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether a property that one object needs has other constants in the other."""
    listed = [values_of(each.get("properties", {}).get(name)) for each in (first, second)]
    if None in listed or not any(name in each.get("required", ()) for each in (first, second)):
        return False
    one, other = ({key(value) for value in values or []} for values in listed)
    return not one & other


def _joined(word: str, first: Any, second: Any) -> Any:
    """The value of a keyword that both schemas have, and that differs."""
    if word in _LARGER | _SMALLER:
        return max(first, second) if word in _LARGER else min(first, second)
    if word == "type":
        kinds = [[each] if isinstance(each, str) else each for each in (first, second)]
        common = [kind for kind in kinds[0] if is_of(kind, kinds[1])]
        return common + [kind for kind in kinds[1] if is_of(kind, kinds[0]) and kind not in common]
    if word == "enum":
        allowed = {key(value) for value in second}
        return [value for value in first if key(value) in allowed]
    if word in ("required", "allOf"):
        return [*first, *second]
    if word == "items":
        return {"allOf": [first, second]}
    if word in ("const", "uniqueItems"):
        return _NONE if word == "const" else True
    raise _not_joined(word)


def _not_joined(word: str) -> LanguageError:
    return LanguageError(
        f"{word} stands in two schemas that must hold together; join them into one"
    )


def _has_members(schema: Mapping[str, Any]) -> bool:
    return "properties" in schema or "additionalProperties" in schema


def _members(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of both; one that a schema does not name is an additional one of it."""
    named = [each.get("properties", {}) for each in (first, second)]
    more = [each.get("additionalProperties", True) for each in (first, second)]

    def together(one: Any, other: Any) -> Any:
        given = [each for each in (one, other) if each is not True and each != {}]
        return {"allOf": given} if len(given) > 1 else given[0] if given else True

    return {
        "properties": {
            name: together(*(own.get(name, rest) for own, rest in zip(named, more, strict=True)))
            for name in {**named[0], **named[1]}
        },
        "additionalProperties": together(*more),
    }
