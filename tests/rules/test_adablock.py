"""AdaBlock's delimiters: the line break of the model's own tokenizer, or ids that it has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.helpers import SPEC
from unmask import Rule, RuleError, load

TEXT = "adablock(newline) | confidence | threshold(0.9)"


def test_the_delimiter_is_the_line_break_of_the_model_s_tokenizer():
    model, tokenizer = load("embedded")
    rule = Rule.parse(TEXT).for_model(model.spec)
    assert [int(rule.window.ids)] == tokenizer.encode("\n")
    assert str(rule) == TEXT.replace("newline", rule.window.ids)


def test_delimiters_that_are_given_stay():
    assert Rule.parse("adablock(7-2) | confidence | top(1)").for_model(SPEC).window.ids == "7-2"


def test_a_model_without_a_line_break_asks_for_the_ids():
    with pytest.raises(RuleError, match=r"no token of random lookup is known to be a line break"):
        Rule.parse(TEXT).for_model(replace(SPEC, newline_id=None))


def test_a_delimiter_outside_the_vocabulary_is_refused():
    with pytest.raises(RuleError, match=r"random lookup has 12 tokens, and 198 is not one of them"):
        Rule.parse("adablock(198-3) | confidence | top(1)").for_model(SPEC)
    with pytest.raises(RuleError, match="must be newline or ids"):
        Rule.parse("adablock(dot) | confidence | top(1)")
