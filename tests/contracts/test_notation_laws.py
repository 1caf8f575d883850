"""Printing and reading a rule are inverse, for every part of the table."""

from __future__ import annotations

from typing import Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import pair_texts
from unmask import Rule
from unmask.errors import RuleError
from unmask.rules.registry import kinds, notation


def test_a_rule_reads_back_as_it_prints():
    for text in pair_texts():
        rule = Rule.parse(text)
        assert str(rule) == text
        assert Rule.parse(str(rule)) == rule, text


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_a_part_without_knobs_given_prints_its_own_defaults(kind):
    part = kind.make()
    assert _in_a_rule(kind, kind.name) == _in_a_rule(kind, notation(part))


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
@given(data=st.data())
def test_a_part_with_random_knobs_reads_back_as_it_prints(kind, data):
    knobs = {
        argument.name: data.draw(_values(argument.kind), argument.name)
        for argument in kind.arguments
        if argument.kind is not str  # a path, which must exist
    }
    if knobs.get("form") == "literal":
        knobs["form"] = "signed"  # the literal form warns
    try:
        part = kind.make(**knobs)
    except RuleError:
        return  # outside the part's range
    text = notation(part)
    rule = _in_a_rule(kind, text)
    assert part in rule.parts
    assert Rule.parse(str(rule)) == rule


def _in_a_rule(kind, text):
    score = text if kind.stage == "score" else "confidence"
    select = text if kind.stage == "select" else "top(1)"
    before = f"{text} | " if kind.stage in ("window", "logits") else ""
    inner = " | swd(5)" if hasattr(kind.target, "around") else ""
    middle = f"{inner} | {text}" if kind.stage in ("modulate", "candidates") else ""
    after = f" | {text}" if kind.stage in ("limit", "revoke") else ""
    return Rule.parse(f"{before}{score}{middle} | {select}{after}")


def _values(knob):
    if get_origin(knob) is Literal:
        return st.sampled_from(get_args(knob))
    if knob is bool:
        return st.booleans()
    if knob is int:
        return st.integers(0, 10**6)
    return st.one_of(st.floats(0, 1), st.floats(allow_nan=False, allow_infinity=False))
