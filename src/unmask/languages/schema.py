"""JSON Schema as a regular expression: every text that it matches is valid.

The expression holds a part of the valid texts: properties in their order, no properties that the
schema does not name, one space at most after a comma or a colon, and few nested references.
A keyword that cannot be kept exactly is an error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations
from operator import ge, gt, le, lt
from typing import Any
from urllib.parse import unquote

from unmask.errors import LanguageError, shown
from unmask.languages.conjunction import both, excluding, values_of, without_notes
from unmask.languages.keywords import KEYWORDS, check_schema, is_of, kind_of, kinds_of
from unmask.languages.numbers import NUMBER, integer, number
from unmask.languages.patterns import escaped
from unmask.languages.strings import STRING, string

DEPTH = 3  # how often the values of any JSON object nest
VALUE_DEPTH = 2  # and those of which a schema says nothing
LONGEST = 1 << 21  # characters of the expressions of all parts of a schema
NESTING = 3  # how often a reference may stand inside itself
LEAST_COST = 16  # characters that a schema counts for at least, since it takes time
MOST_TOGETHER = 32  # schemas of an allOf
MOST_EXCLUDING = 256  # alternatives of which each must exclude all others


def schema_regex(text: str) -> str:
    """The regular expression of a JSON Schema."""
    try:
        schema = json.loads(text, parse_constant=_no_number)
        if not isinstance(schema, Mapping | bool):
            raise LanguageError(f"a schema is a JSON object, got {shown(schema)}")
        expression = _Schema(schema).regex(schema, {})
    except LanguageError:
        raise
    except ValueError as error:  # json.JSONDecodeError, or a number of too many digits
        raise LanguageError(f"the schema is not JSON: {error}") from None
    except RecursionError:
        raise LanguageError("the schema nests too deeply; use a flatter one") from None
    if expression is None:
        raise LanguageError("no value is valid under the schema")
    return expression


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
        self.made[0] += LEAST_COST + len(expression or "")
        _check_size(self.made[0])
        return expression

    def _regex(self, schema: Any, seen: Mapping[str, int]) -> str | None:
        if isinstance(schema, bool):
            return _any_value(VALUE_DEPTH) if schema else None
        check_schema(schema)
        for word, read in (
            ("$ref", self._reference),
            ("allOf", self._all),
            ("anyOf", self._any),
            ("oneOf", self._one),
        ):
            if word in schema:
                return read(schema, seen)
        if "enum" in schema or "const" in schema:
            return _constants(schema)
        kinds = kinds_of(schema)
        if not kinds:
            return _any_value(VALUE_DEPTH)
        return _either([self._typed(kind, schema, seen) for kind in kinds])

    def _reference(self, schema: Any, seen: Mapping[str, int]) -> str | None:
        path, rest = schema["$ref"], without_notes(schema, "$ref")
        if seen.get(path, 0) >= NESTING:
            return None
        return self.regex(both(rest, self._at(path)), {**seen, path: seen.get(path, 0) + 1})

    def _all(self, schema: Any, seen: Mapping[str, int]) -> str | None:
        if len(schema["allOf"]) > MOST_TOGETHER:
            raise LanguageError(f"allOf takes at most {MOST_TOGETHER} schemas; join some of them")
        return self.regex(reduce(both, schema["allOf"], without_notes(schema, "allOf")), seen)

    def _any(self, schema: Any, seen: Mapping[str, int]) -> str | None:
        rest = without_notes(schema, "anyOf")
        return _either([self.regex(both(rest, each), seen) for each in schema["anyOf"]])

    def _one(self, schema: Any, seen: Mapping[str, int]) -> str | None:
        """Alternatives that exclude one another: a value fits at most one of them."""
        rest, tag = without_notes(schema, "oneOf"), schema.get("discriminator")
        if isinstance(tag, Mapping) and isinstance(tag.get("propertyName"), str):
            rest = both(rest, {"required": [tag["propertyName"]]})
        every = [both(rest, self._resolved(each)) for each in schema["oneOf"]]
        if len(every) > MOST_EXCLUDING:
            raise LanguageError(f"oneOf takes at most {MOST_EXCLUDING} alternatives; use anyOf")
        if not all(excluding(*pair) for pair in combinations(every, 2)):
            raise LanguageError(
                "oneOf needs alternatives of different types, or with different constants of a "
                "required property; use anyOf"
            )
        return _either([self.regex(each, seen) for each in every])

    def _resolved(self, schema: Any) -> Any:
        """A schema with what it refers to in its place; a long chain of references stays."""
        for _ in range(NESTING):
            if isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str):
                schema = both(without_notes(schema, "$ref"), self._at(schema["$ref"]))
        return schema

    def _at(self, path: str) -> Any:
        """What a reference points to."""
        target = self.document if path.startswith("#") else None
        for step in unquote(path.removeprefix("#")).split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and step.isdecimal() and int(step) < len(target):
                target = target[int(step)]
            else:
                target = target.get(step) if isinstance(target, Mapping) else None
        if target is None or (path != "#" and not path.startswith("#/")):
            raise LanguageError(
                f"the schema has no {shown(path)}; references are of the form #/$defs/NAME"
            )
        return target

    def _typed(self, kind: str, schema: Any, seen: Mapping[str, int]) -> str | None:
        plain: dict[str, Callable[[Any], str | None]] = {
            "string": string,
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
        raise LanguageError(
            f"unknown type {shown(kind)} in the schema; known: {', '.join(KEYWORDS)}"
        )

    def _array(self, schema: Any, seen: Mapping[str, int]) -> str | None:
        if schema.get("uniqueItems"):
            raise LanguageError("no automaton can check uniqueItems; leave it out of the schema")
        least, most = int(schema.get("minItems", 0)), schema.get("maxItems")
        most = None if most is None else int(most)
        if most is not None and most < least:
            return None
        first = [self.regex(each, seen) for each in schema.get("prefixItems", [])[:most]]
        item = self.regex(schema.get("items", True), seen) if least >= len(first) else ""
        if not first:
            if item is None or most == 0:
                return None if least else r"\[\]"
            return _list(item, least, most)
        _check_size(least * len(item or ""))
        every = [*first, *[item] * (least - len(first))]  # no more than it must have
        return None if None in every else rf"\[{', ?'.join(map(str, every))}\]"

    def _object(self, schema: Any, seen: Mapping[str, int]) -> str | None:
        named, required = schema.get("properties", {}), set(schema.get("required", ()))
        more = schema.get("additionalProperties", True)
        named = {
            **named,
            **{name: more for name in schema.get("required", ()) if name not in named},
        }
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
        raise LanguageError(
            f"the schema makes an expression of more than {LONGEST} characters; use fewer "
            "properties and references"
        )


def _no_number(text: str) -> None:
    raise LanguageError(f"the schema is not JSON: {text} is no number")


def _constants(schema: Any) -> str | None:
    """The listed values that fit the other keywords."""
    for word in ("pattern", "format", "items", "prefixItems", "uniqueItems", *KEYWORDS["object"]):
        if word in schema:
            raise LanguageError(
                f"{word} is not supported beside enum or const; leave one of them out"
            )
    values = [value for value in values_of(schema) or [] if _fits(value, schema)]
    return _either([escaped(json.dumps(value, ensure_ascii=False)) for value in values])


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value has the type and keeps the limits of a schema."""
    kind, sizes = kind_of(value), {"string": "Length", "array": "Items"}
    if "type" in schema and not is_of(kind, kinds_of(schema)):
        return False
    if kind in sizes:
        low, high = (schema.get(f"{end}{sizes[kind]}") for end in ("min", "max"))
        return (low is None or len(value) >= low) and (high is None or len(value) <= high)
    limits = {"minimum": ge, "maximum": le, "exclusiveMinimum": gt, "exclusiveMaximum": lt}
    checks = [compare(value, schema[word]) for word, compare in limits.items() if word in schema]
    return all(checks) if kind in ("integer", "number") else True


def _either(alternatives: Sequence[str | None]) -> str | None:
    possible = list(dict.fromkeys(each for each in alternatives if each is not None))
    return f"(?:{'|'.join(possible)})" if possible else None


def _list(item: str, least: int, most: int | None) -> str:
    """A JSON array of so many items."""
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
