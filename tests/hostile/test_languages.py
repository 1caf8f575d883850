"""Languages made to exhaust memory or time are refused in one line, before they do."""

from __future__ import annotations

import json
import time

import pytest

from unmask import RequestError
from unmask.languages import bounded, spelled
from unmask.languages.build import build

pytestmark = pytest.mark.hostile

WORDS = [*(bytes([byte]) for byte in range(256)), b"ab", b"aab", None]
NODE = {"type": "object", "properties": {f"p{i}": {"$ref": "#/$defs/b"} for i in range(60)}}
MUTUAL = {"$defs": {"a": NODE, "b": {**NODE, "items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}
MANY = {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(3000)}}


@pytest.mark.parametrize(
    ("language", "message"),
    [
        ("regex:(a|b)*a(a|b){24}", "takes more than 1 s"),  # 2^25 states
        (r"regex:(?:\p{L}{0,255}){99}", "takes more than 1 s"),
        ("regex:((a{100}){100}){3}", "states; at most 20000 are allowed"),
        (f"schema:{json.dumps(MUTUAL)}", "more than 2097152 characters"),
        (f"schema:{json.dumps(MANY)}", "more than 2097152 characters"),
        (f"schema:{'[' * 100_000}", "nests too deeply"),
        ("schema:" + '{"items":' * 20_000 + "true" + "}" * 20_000, "nests too deeply"),
    ],
    ids=lambda text: text[:40],
)
def test_a_language_that_is_too_large_is_refused_in_time(language, message, monkeypatch):
    monkeypatch.setattr(bounded, "SECONDS", 1)
    begin = time.process_time()
    with pytest.raises(RequestError, match=message) as caught:
        build(language, WORDS)
    assert time.process_time() - begin < 5
    assert len(str(caught.value)) < 400


def test_memory_is_bounded_where_time_is_not(monkeypatch):
    monkeypatch.setattr(bounded, "MEMORY", 1 << 27)
    with pytest.raises(RequestError, match="or 128 MiB to make"):
        build("regex:(a|b)*a(a|b){24}", WORDS)


def test_a_table_of_too_many_cells_and_ways_is_refused(monkeypatch):
    monkeypatch.setattr(spelled, "MOST_CELLS", 1000)
    with pytest.raises(RequestError, match="too many states and ways between them"):
        build("regex:[a-f]{300}", WORDS)
    monkeypatch.undo()
    monkeypatch.setattr("unmask.languages.build.MOST_ARCS", 100)
    with pytest.raises(RequestError, match="at most 100 are allowed"):
        build("regex:[a-f]{1,300}", WORDS)


def test_a_long_chain_of_states_is_built_without_a_round_for_each(monkeypatch):
    monkeypatch.setattr(spelled, "MOST_ROUNDS", 10)
    language = build("regex:a{1500}b", WORDS)
    assert language.shortest() == 1499  # 1498 times a, then aab
