"""JSON Schemas, patterns and limits: every text of the language is valid."""

from __future__ import annotations

import json
import random
import re
from functools import cache

import jsonschema
import numpy as np
import pytest

from unmask import RequestError
from unmask.languages.build import build, byte_automaton
from unmask.languages.notation import choice, regex_of, schema_file
from unmask.languages.schema import json_regex, schema_regex
from unmask.languages.spelled import ByteAutomaton

EVERYTHING = {
    "$defs": {"tree": {
        "type": "object",
        "properties": {
            "v": {"type": "integer"},
            "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
        },
        "required": ["v", "kids"],
    }},
    "type": "object",
    "properties": {
        "tree": {"$ref": "#/$defs/tree"},
        "name": {"type": "string", "minLength": 1, "maxLength": 9},
        "age": {"type": "integer", "minimum": -7, "maximum": 130},
        "share": {"type": "number", "minimum": 0, "maximum": 100},
        "born": {"type": "string", "format": "date"},
        "seen": {"type": "string", "format": "date-time"},
        "mail": {"type": "string", "format": "email"},
        "host": {"type": "string", "format": "ipv4"},
        "code": {"type": "string", "pattern": r'^[^,]+\.x"y\\z.$'},
        "part": {"type": "string", "pattern": r"a\d+"},
        "tags": {
            "type": "array", "items": {"enum": ["a", 'b"c', 1, None]}, "minItems": 1, "maxItems": 3,
        },
        "more": {"type": "object", "additionalProperties": {"type": "integer"}},
        'k"ey': {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "boolean"}, {"const": {"x": [1, "é"]}}]},
        "one": {"oneOf": [
            {"type": "integer", "exclusiveMinimum": 99, "exclusiveMaximum": 1235}, {"type": "null"},
        ]},
        "pair": {"type": "array", "prefixItems": [{"type": "number"}, True]},
    },
    "required": ["tags", 'k"ey', "pair"],
    "additionalProperties": False,
}  # fmt: skip


@cache
def distances(language: ByteAutomaton) -> np.ndarray:
    """How many bytes are missing at least: [S]."""
    far = np.where(language.accepting, 0, 10**9)
    while True:
        nearer = np.where(language.table >= 0, far[language.table], 10**9).min(1) + 1
        if (np.minimum(far, nearer) == far).all():
            return far
        far = np.minimum(far, nearer)


def sampled(language: ByteAutomaton, draw: random.Random) -> str:
    """A random text of a language; after some bytes it takes the shortest way to the end."""
    far = distances(language)
    text, state = bytearray(), language.start
    while not (language.accepting[state] and (draw.random() < 0.3 or not far[state])):
        ways = np.flatnonzero(language.table[state] >= 0).tolist()
        if len(text) > 150:
            ways = [b for b in ways if far[language.table[state, b]] < far[state]]
        if not ways:
            break
        text.append(draw.choice(ways))
        state = int(language.table[state, text[-1]])
    return text.decode()


def test_every_text_of_a_schema_is_valid_under_it():
    language, draw = byte_automaton(schema_regex(json.dumps(EVERYTHING)), "all"), random.Random(0)
    seen = set()
    for _ in range(150):
        value = json.loads(sampled(language, draw))
        jsonschema.validate(value, EVERYTHING, format_checker=jsonschema.FormatChecker())
        seen |= value.keys()
    assert seen == EVERYTHING["properties"].keys()


def test_limits_of_whole_numbers_are_exact():
    draw = random.Random(1)
    for _ in range(60):
        low, high = sorted(draw.choices(range(-1300, 1300), k=2))
        schema = {"type": "integer", "minimum": low, "maximum": high}
        for absent in draw.choice([(), ("minimum",), ("maximum",)]):
            schema.pop(absent)
        expression = re.compile(schema_regex(json.dumps(schema)))
        for number in {
            *draw.choices(range(-1400, 1400), k=60),
            low,
            high,
            low - 1,
            high + 1,
            0,
            9999,
        }:
            fits = schema.get("minimum", number) <= number <= schema.get("maximum", number)
            assert bool(expression.fullmatch(str(number))) == fits, (schema, number)
    between = re.compile(schema_regex('{"type": "number", "minimum": 3, "maximum": 12}'))
    assert [bool(between.fullmatch(text)) for text in ("3", "11.99", "12.0", "12.01", "2.9")] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_there_is_no_year_0():
    date = re.compile(schema_regex('{"type": "string", "format": "date"}'))
    for year in (0, 1, 10, 900, 1900, 2000, 9999):
        assert bool(date.fullmatch(f'"{year:04}-12-31"')) == (year > 0)


def test_any_json_is_json():
    language, draw = byte_automaton(json_regex(), "json"), random.Random(2)
    values = [json.loads(sampled(language, draw)) for _ in range(60)]
    assert all(isinstance(value, dict) for value in values)
    assert any(isinstance(inner, list) for value in values for inner in value.values())


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "array", "uniqueItems": True}, "no automaton can check uniqueItems"),
        ({"type": "number", "multipleOf": 2}, "multipleOf is not supported"),
        ({"not": {"type": "string"}}, "not is not supported"),
        ({"type": "strnig"}, "unknown type 'strnig'"),
        ({"type": "string", "format": "jpeg"}, "unknown format 'jpeg'"),
        ({"type": "object", "properties": {}, "required": ["a"]}, "requires 'a'"),
        ({"$ref": "#/$defs/a"}, "has no '#/\\$defs/a'"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "different types"),
        ({"allOf": [{"type": "integer"}, {}]}, "allOf"),
        ({"type": "string", "pattern": "a(?=b)"}, "inside a pattern"),
        ({"type": "string", "pattern": "a", "maxLength": 3}, "one of pattern, format"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "no value is valid"),
        ({"type": "number", "maximum": 2}, "need a minimum >= 0"),
        ([], "is a JSON object"),
    ],
)
def test_what_cannot_be_kept_is_named(schema, message):
    with pytest.raises(RequestError, match=message):
        schema_regex(json.dumps(schema))


def test_the_notation_reads_choices_and_files(tmp_path):
    assert re.fullmatch(regex_of("choice:yes,no.,a|b"), "no.")
    assert not re.fullmatch(regex_of("choice:yes,no.,a|b"), "nox")
    assert re.fullmatch(regex_of(choice(["a,b", "c"])), "a,b")
    (tmp_path / "s.json").write_text('{"type": "null"}')
    assert regex_of(schema_file(str(tmp_path / "s.json"))) == "(?:null)"
    for wrong in ("", "regexp:a", "regex:", "choice:a,,b", "choice:[1]", "choice:[", "schema:{"):
        with pytest.raises(RequestError):
            regex_of(wrong)
    with pytest.raises(RequestError, match="cannot be read"):
        schema_file(str(tmp_path / "none.json"))


def test_an_automaton_is_kept_on_disk_and_a_broken_file_is_built_again(tmp_path):
    words = [b"a", b"ab", None, b"b", b"abab"]
    first = build("regex:(ab)+", words, tmp_path)
    (file,) = tmp_path.glob("*.npz")
    assert first.accepts([0, 3, 1, 4])
    assert not first.accepts([0, 1])
    stamp = file.stat().st_mtime_ns
    assert build("regex:(ab)+", words, tmp_path) == first
    assert file.stat().st_mtime_ns == stamp
    file.write_bytes(b"broken")
    assert build("regex:(ab)+", words, tmp_path) == first
    assert build("regex:(ab)+", [*words, b"b"], tmp_path) != first
    with pytest.raises(RequestError, match="cannot be used as a regular expression"):
        build("regex:(a", words)


def test_characters_of_several_bytes_may_be_split_over_tokens():
    word = "é".encode()
    language = build("regex:é+", [word[:1], word[1:], word])
    assert language.accepts([0, 1, 2])
    assert not language.accepts([1, 0])
    assert not language.accepts([0])
