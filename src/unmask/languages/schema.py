"""JSON Schema as a regular expression: every text that it matches is valid.

The expression holds a part of the valid texts: properties in their order, no properties that the
schema does not name, one space at most after a comma or a colon, and few nested references.
A keyword that cannot be kept exactly is an error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unmask.errors import RequestError, shown
from unmask.languages.numbers import NUMBER, integer, number
from unmask.languages.strings import FORMATS, STRING, escaped, matching, sized

DEPTH = 3  # how often the values of any JSON object nest
VALUE_DEPTH = 2  # and those of which a schema says nothing
LONGEST = 1 << 21  # characters of the expressions of all parts of a schema
NESTING = 3  # how often a reference may stand inside itself
NOTES = {
    "title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs", "strict",
    "definitions", "deprecated", "readOnly", "writeOnly", "name",
}  # fmt: skip
KEYWORDS = {
    "string": {"minLength", "maxLength", "pattern", "format"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "number": {"minimum", "maximum"},
    "boolean": set[str](),
    "null": set[str](),
    "array": {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"},
    "object": {"properties", "required", "additionalProperties"},
}
_OF = {keyword: kind for kind, words in KEYWORDS.items() for keyword in words}


def schema_regex(text: str) -> str:
    """The regular expression of a JSON Schema."""
    try:
        schema = _read(text)
        if not isinstance(schema, Mapping | bool):
            raise RequestError(f"a schema is a JSON object, got {shown(schema)}")
        expression = _Schema(schema).regex(schema, {})
    except RecursionError:
        raise RequestError("the schema nests too deeply; use a flatter one") from None
    if expression is None:
        raise RequestError("no value is valid under the schema")
    return expression


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:  # also a number beyond Python's limit
        raise RequestError(f"the schema is not JSON: {error}") from None


def json_regex(depth: int = DEPTH) -> str:
    """A JSON object whose values nest so often."""
    return _mapping(STRING, _any_value(depth - 1))


def _any_value(depth: int) -> str:
    """Any JSON value that nests so often."""
    plain = f"{STRING}|{NUMBER}|true|false|null"
    if not depth:
        return f"(?:{plain})"
    inner = _any_value(depth - 1)
    return f"(?:{plain}|{_list(inner, 0, None)}|{_mapping(STRING, inner)})"


@dataclass(frozen=True)
class _Schema:
    """One document; None stands for a schema that nothing fits."""

    document: Any
    made: list[int] = field(default_factory=lambda: [0])  # characters of all expressions so far

    def regex(self, schema: Any, seen: Mapping[str, int]) -> str | None:
        """What fits a schema; `seen` counts the references around it."""
        expression = self._regex(schema, seen)
        self.made[0] += 1 + len(expression or "")
        _check_size(self.made[0])
        return expression

    def _regex(self, schema: Any, seen: Mapping[str, int]) -> str | None:
        if isinstance(schema, bool):
            return _any_value(VALUE_DEPTH) if schema else None
        _check(schema)
        for word, alternatives in (
            ("anyOf", self._any),
            ("oneOf", self._one),
            ("allOf", self._all),
        ):
            if word in schema:
                return alternatives(schema, seen)
        if "$ref" in schema:
            return self._reference(schema["$ref"], seen)
        if "enum" in schema or "const" in schema:
            return _constants(schema)
        kinds = schema.get("type", sorted({_OF[word] for word in schema if word in _OF}))
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if not kinds:
            return _any_value(VALUE_DEPTH)
        return _either([self._typed(kind, schema, seen) for kind in kinds])

    def _any(self, schema: Any, seen: Mapping[str, int]) -> str | None:
        return _either([self.regex(each, seen) for each in schema["anyOf"]])

    def _one(self, schema: Any, seen: Mapping[str, int]) -> str | None:
        """Alternatives of different types: a value fits at most one of them."""
        kinds = [each.get("type") for each in schema["oneOf"]]
        whole = ["number" if kind == "integer" else kind for kind in kinds]
        if not all(isinstance(kind, str) for kind in kinds) or len({*whole}) < len(whole):
            raise RequestError("oneOf needs alternatives of different types; use anyOf")
        return _either([self.regex(each, seen) for each in schema["oneOf"]])

    def _all(self, schema: Any, seen: Mapping[str, int]) -> str | None:
        if len(schema["allOf"]) != 1:
            raise RequestError("allOf may hold one schema only; join its parts into one")
        return self.regex(schema["allOf"][0], seen)

    def _reference(self, path: str, seen: Mapping[str, int]) -> str | None:
        target = self.document
        for step in path.removeprefix("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            target = target.get(step) if isinstance(target, Mapping) else None
        if not path.startswith("#") or target is None:
            raise RequestError(
                f"the schema has no {shown(path)}; references are of the form #/$defs/NAME"
            )
        if seen.get(path, 0) >= NESTING:
            return None
        return self.regex(target, {**seen, path: seen.get(path, 0) + 1})

    def _typed(self, kind: str, schema: Any, seen: Mapping[str, int]) -> str | None:
        plain: dict[str, Callable[[Any], str | None]] = {
            "string": _string,
            "integer": integer,
            "number": number,
            "boolean": lambda schema: "(?:true|false)",
            "null": lambda schema: "null",
        }
        if kind in plain:
            return plain[kind](schema)
        if kind == "array":
            return self._array(schema, seen)
        if kind == "object":
            return self._object(schema, seen)
        raise RequestError(
            f"unknown type {shown(kind)} in the schema; known: {', '.join(KEYWORDS)}"
        )

    def _array(self, schema: Any, seen: Mapping[str, int]) -> str | None:
        if schema.get("uniqueItems"):
            raise RequestError("no automaton can check uniqueItems; leave it out of the schema")
        first = [self.regex(each, seen) for each in schema.get("prefixItems", [])]
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if not first:
            item = self.regex(schema.get("items", True), seen)
            if item is None or most == 0:
                return None if least else r"\[\]"
            return _list(item, least, most)
        if least > len(first) or (most is not None and most < len(first)):
            raise RequestError("minItems and maxItems must allow exactly the prefixItems")
        return None if None in first else rf"\[{', ?'.join(map(str, first))}\]"

    def _object(self, schema: Any, seen: Mapping[str, int]) -> str | None:
        named, required = schema.get("properties", {}), set(schema.get("required", ()))
        more = schema.get("additionalProperties", True)
        for name in required - set(named):
            raise RequestError(
                f"the schema requires {shown(name)}, which its properties do not name"
            )
        if not named and more is not False:
            value = self.regex(more, seen)
            return r"\{\}" if value is None else _mapping(STRING, value)
        members: list[tuple[str, bool]] = []
        for name, each in named.items():
            value = self.regex(each, seen)
            if value is None and name in required:
                return None
            if value is not None:
                members.append(
                    (f"{escaped(json.dumps(name, ensure_ascii=False))}: ?{value}", name in required)
                )
        return rf"\{{{_members(members)}\}}"


def _check_size(characters: int) -> None:
    """Raise for a schema whose expression would become too long."""
    if characters > LONGEST:
        raise RequestError(
            f"the schema makes an expression of more than {LONGEST} characters; use fewer "
            "properties and references"
        )


def _check(schema: Any) -> None:
    """Raise for a keyword that would not be kept."""
    if not isinstance(schema, Mapping):
        raise RequestError(f"a schema is a JSON object, got {shown(schema)}")
    known = {"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"} | NOTES | set(_OF)
    for word in schema:
        if word not in known:
            raise RequestError(f"{word} is not supported; leave it out of the schema")


def _string(schema: Any) -> str:
    """A string by its pattern, its format or its length."""
    given = [word for word in ("pattern", "format") if word in schema]
    sizes = schema.get("minLength", 0), schema.get("maxLength")
    if len(given) == 2 or (given and sizes != (0, None)):
        raise RequestError(
            "a string takes one of pattern, format, and a length; leave out the others"
        )
    if "pattern" in schema:
        return f'"{matching(schema["pattern"])}"'
    if "format" in schema:
        if schema["format"] not in FORMATS:
            known = ", ".join(FORMATS)
            raise RequestError(
                f"unknown format {shown(schema['format'])} in the schema; known: {known}"
            )
        return f'"{FORMATS[schema["format"]]}"'
    return sized(*sizes)


def _constants(schema: Any) -> str | None:
    values = [schema["const"]] if "const" in schema else schema["enum"]
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    texts = [
        escaped(json.dumps(value, ensure_ascii=False))
        for value in values
        if kinds is None or any(_is(value, kind) for kind in kinds)
    ]
    return _either(texts)


def _is(value: Any, kind: str) -> bool:
    types: dict[str, Any] = {
        "string": str, "boolean": bool, "null": type(None), "array": list, "object": dict,
        "integer": int, "number": int | float,
    }  # fmt: skip
    return isinstance(value, types.get(kind, ())) and (
        kind == "boolean" or (value is not True and value is not False)
    )


def _either(alternatives: Sequence[str | None]) -> str | None:
    possible = list(dict.fromkeys(each for each in alternatives if each is not None))
    return f"(?:{'|'.join(possible)})" if possible else None


def _list(item: str, least: int, most: int | None) -> str:
    """A JSON array of so many items."""
    if most is not None and most < max(least, 1):
        raise RequestError(f"maxItems {most} is below minItems {least}")
    rest = f"{{{max(least - 1, 0)},{'' if most is None else most - 1}}}"
    items = f"{item}(?:, ?{item}){rest}"
    return rf"\[{items if least else f'(?:{items})?'}\]"


def _mapping(key: str, value: str) -> str:
    """A JSON object of any members of this kind."""
    member = f"{key}: ?{value}"
    return rf"\{{(?:{member}(?:, ?{member})*)?\}}"


def _members(members: Sequence[tuple[str, bool]]) -> str:
    """Members in their order, of which those that are not required may be missing."""
    needed = next((place for place, (_, required) in enumerate(members) if required), None)
    if needed is not None:  # commas stand behind the members before it, and before those after it
        before = "".join(f"(?:{member}, ?)?" for member, _ in members[:needed])
        return f"{before}{members[needed][0]}{_after(members[needed + 1 :])}"
    _check_size(len(members) * sum(len(member) for member, _ in members))
    every = [f"{member}{_after(members[place + 1 :])}" for place, (member, _) in enumerate(members)]
    return f"(?:{'|'.join(every)})?"


def _after(members: Sequence[tuple[str, bool]]) -> str:
    return "".join(f", ?{m}" if required else f"(?:, ?{m})?" for m, required in members)
