"""Arguments of a chat template: JSON values of a bounded size, from every surface."""

from __future__ import annotations

import json

import pytest

from unmask import RequestError
from unmask.models.template_args import (
    MOST_ARGUMENTS,
    check_template_args,
    parse_template_args,
    spelled_template_args,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("enable_thinking=false", {"enable_thinking": False}),
        ("a=False, b = 3,c=some words", {"a": False, "b": 3, "c": "some words"}),
        ('{"a": [1, {"b": null}], "c": 0.5}', {"a": [1, {"b": None}], "c": 0.5}),
        ("a=", {"a": ""}),
        ("a=no,b=Off,c=yes,d=on,e=TRUE", {"a": False, "b": False, "c": True, "d": True, "e": True}),
        ('a="no",b=none', {"a": "no", "b": "none"}),
        ('{"a": "no"}', {"a": "no"}),
        ("{}", {}),
    ],
)
def test_a_text_is_json_or_pairs(text, words):
    assert parse_template_args("--template-args", text) == words


def test_equal_arguments_have_equal_texts():
    texts = ["b=1,a=true", '{"a": true, "b": 1}', {"a": True, "b": 1}, {"b": 1, "a": True}]
    assert {spelled_template_args("x", given) for given in texts} == {'{"a": true, "b": 1}'}


class Anything:
    def __repr__(self):
        return "anything"


def nested(depth):
    return [nested(depth - 1)] if depth else 1


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["a"], "must be a JSON object"),
        ({"a b": 1}, "is not a name"),
        ({3: 1}, "is not a name"),
        ({"messages": []}, "set by the chat itself"),
        ({"add_generation_prompt": False}, "set by the chat itself"),
        ({"a": Anything()}, "must be a JSON value, got anything"),
        ({"a": float("nan")}, "must be a JSON value"),
        ({"a": 1 << 70}, "must be a JSON value"),
        ({"a": {1: 2}}, "must be a JSON value"),
        ({"a": "x" * (1 << 21)}, "is too large"),
        ({"a": [0] * 20_000}, "is too large"),
        ({"a": nested(40)}, "is too large"),
        ({f"a{n}": 1 for n in range(MOST_ARGUMENTS + 1)}, "at most"),
    ],
)
def test_what_is_not_plain_json_of_a_bounded_size_is_refused(given, why):
    with pytest.raises(RequestError, match=why) as caught:
        check_template_args("template_args", given)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["thinking", '{"a": 1', "[1]", "=3", "{" * 5000])
def test_a_text_that_is_neither_is_refused_in_one_line(text):
    with pytest.raises(RequestError, match="--template-args") as caught:
        parse_template_args("--template-args", text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["a=1,a=2", "a=1, a =1", '{"a": 1, "a": 2}', '{"b": {"a": 1, "a": 1}}']
)
def test_a_key_that_is_given_twice_is_refused(text):
    with pytest.raises(RequestError, match="'a' is given more than once; give it one value"):
        parse_template_args("--template-args", text)


def test_the_values_are_copies():
    words = {"a": [1, 2]}
    kept = check_template_args("x", words)
    words["a"].append(3)
    assert kept == {"a": [1, 2]}
    assert json.loads(spelled_template_args("x", kept)) == {"a": [1, 2]}
