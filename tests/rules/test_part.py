"""The protocol of a part: its abilities, their defaults, and what is refused at registration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pytest

from tests.helpers import random_lookup
from unmask import Needs, Rule, RuleError, decode, modulator, score, selection
from unmask.rules.part import Abilities
from unmask.rules.registry import abilities_of, describe, kinds, register
from unmask.rules.scores import confidence
from unmask.rules.view import EVERYTHING


def part_with(**members):
    """A frozen dataclass of one knob with these members."""
    members = {"__annotations__": {"k": int}, "k": 1, "__call__": _everything, **members}
    return dataclass(frozen=True)(type("Own", (), members))


def _everything(self, view, scores):
    return view.masked


def test_a_plain_function_has_the_defaults():
    assert abilities_of(lambda view: view.confidence) == Abilities()
    assert abilities_of(lambda view: view.confidence).needs == EVERYTHING


def test_a_part_has_what_it_defines_and_the_defaults_of_the_rest():
    own = abilities_of(part_with(waits=True, describe=lambda self: f"The best {self.k}.")(3))
    assert own.waits
    assert own.adaptive
    assert own.describe() == "The best 3."
    assert own.gauge(None, None, None) == {}


@pytest.mark.parametrize("wrap", [property, cached_property])
def test_an_ability_may_be_a_property(wrap):
    part = part_with(needs=wrap(lambda self: Needs(trail=self.k)))
    register("select", "own")(part)
    assert Rule.parse("confidence | own(4)").needs == Needs(trail=4)


def test_a_class_without_needs_has_those_of_its_row():
    selection(needs=Needs())(part_with())
    assert Rule.parse("confidence | Own").needs == Needs()


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"adaptve": False}, "own: 'adaptve' is not an ability of a part; did you mean 'adaptive'"),
        ({"need": Needs()}, "did you mean 'needs'"),
        ({"guage": _everything}, "did you mean 'gauge'"),
        ({"wait": True}, "did you mean 'waits'"),
        ({"checkmodel": _everything}, "did you mean 'check_model'"),
        ({"ready": _everything}, "own: ready is for a modulator, not for a selection; remove it"),
        ({"waits": 1}, "own: waits must be bool, got 1"),
        ({"needs": None}, "own: needs must be Needs, got None"),
        ({"gauge": 3.0}, "own: gauge must be a method, got 3.0"),
    ],
)
def test_a_wrong_ability_is_refused_when_the_part_is_registered(members, message):
    with pytest.raises(RuleError, match=message):
        register("select", "own")(part_with(**members))


def test_a_wrong_ability_is_refused_in_a_part_without_a_name_too():
    class Plain:
        wiats = True

        def __call__(self, view, scores):
            return view.masked

    def function(view, scores):
        return view.masked

    for part in (Plain(), part_with(wiats=True)()):
        with pytest.raises(RuleError, match="'wiats' is not an ability of a part"):
            Rule(confidence, part)
    with pytest.raises(RuleError, match="ready is for a modulator, not for a selection"):
        Rule(confidence, part_with(ready=_everything)())
    selection(function)
    function.wiats = True
    with pytest.raises(RuleError, match="did you mean 'waits'"):
        Rule.parse("confidence | function")


def test_an_ability_of_another_stage_is_refused():
    with pytest.raises(RuleError, match="Own: waits is for a selection, not for a score; remove"):
        score(part_with(waits=True))
    with pytest.raises(RuleError, match=r"why is for a .* or a revocation, not for a modul"):
        modulator(part_with(why=_everything))


def test_knobs_and_names_with_an_underscore_are_free():
    members = {"__annotations__": {"need": int}, "need": 2, "_ready": _everything}
    selection(part_with(**members))
    assert decode(random_lookup(0), [1], "confidence | Own(need=3)", length=4).nfe == 1


def test_a_class_that_is_no_dataclass_is_refused_with_what_to_do():
    class Plain:
        def __call__(self, view, scores):
            return view.masked

    with pytest.raises(RuleError, match=r"Plain: the class Plain must be a dataclass; write @data"):
        selection(Plain)


def test_a_part_may_refuse_the_other_parts_of_its_rule():
    def check_rule(self, rule):
        raise RuleError(f"own does not go with {len(rule.modulators)} modulator")

    selection(part_with(check_rule=check_rule))
    with pytest.raises(RuleError, match="own does not go with 1 modulator"):
        Rule.parse("confidence | swd(1) | Own")


def test_a_part_without_words_is_described_by_its_docstring():
    @selection
    def mine(view, scores):
        """The masks of even places"""
        return view.masked

    assert describe(mine) == "The masks of even places."
    assert list(Rule.parse("margin | mine").explain())[1] == "The masks of even places."


def test_every_part_is_described_in_sentences():
    for kind in kinds():
        words = describe(kind.make())
        assert words.endswith(".")
        assert words[0].isupper()
