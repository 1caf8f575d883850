"""The table of parts, and how users add to it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from dataclasses import dataclass
from typing import Literal

import pytest
import torch

import unmask
from tests.helpers import hand_view, places, random_lookup, table
from unmask import Needs, Rule, RuleError, Scores, decode, modulator, score, selection
from unmask.rules.registry import (
    STAGES,
    Kind,
    abilities_of,
    kind_named,
    kind_of,
    kinds,
    notation,
    register,
)
from unmask.rules.view import EVERYTHING


def test_kinds_come_in_the_order_of_the_stages():
    stages = [STAGES.index(kind.stage) for kind in kinds()]
    assert stages == sorted(stages)
    assert {kind.stage for kind in kinds()} == set(STAGES)


def test_the_parts_of_one_stage_are_all_of_that_stage():
    assert {kind.stage for kind in kinds("score")} == {"score"}
    assert {"confidence", "margin", "entropy", "random"} <= {kind.name for kind in kinds("score")}


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_every_part_documents_itself(kind):
    assert kind.formula
    assert kind.source
    assert kind.summary
    assert kind.usage.startswith(kind.name)


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_every_part_is_frozen_and_hashable(kind):
    part = kind.make()
    assert hash(part) == hash(kind.make())
    assert part == kind.make()
    if dataclasses.is_dataclass(part) and kind.arguments:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, kind.arguments[0].name, 1)


def test_usage_shows_knobs_defaults_and_words():
    assert kind_named("top").usage == "top(k=1)"
    assert kind_named("swd").usage.startswith("swd(lam=5, kl=prev_cur (prev_cur|cur_prev|js|tv)")
    assert kind_named("confidence").usage == "confidence"


def test_a_decorated_function_is_a_score_of_the_notation():
    @score
    def surprise(view):
        """Probability that is left."""
        return Scores.log_utility(-view.confidence)

    rule = Rule.parse("surprise | top(1)")
    assert str(rule) == "surprise | top(1)"
    assert places(rule(hand_view([0.9, 0.2])).chosen) == [1]
    assert kind_named("surprise").summary == "Probability that is left."


def test_a_decorated_function_is_a_modulator_of_the_notation():
    @modulator
    def left(view, scores):
        place = torch.arange(view.masked.shape[-1])
        return scores - place.double()

    rule = Rule.parse("confidence | left | top(1)")
    assert places(rule(hand_view([0.5, 0.9])).chosen) == [0]


def test_a_decorated_function_is_a_selection_of_the_notation():
    @selection
    def everything(view, scores):
        return view.masked

    result = decode(random_lookup(0), [1], "confidence | everything", length=5)
    assert result.nfe == 1


def test_a_function_part_has_knobs():
    @score
    def power(view, exponent: float = 2.0, flip: bool = False, way: Literal["up", "down"] = "up"):
        sign = -1.0 if flip or way == "down" else 1.0
        return Scores.log_utility(sign * view.confidence**exponent)

    rule = Rule.parse("power(3, way=down) | top(1)")
    assert str(rule) == "power(3, way=down) | top(1)"
    assert Rule.parse(str(rule)) == rule
    torch.testing.assert_close(rule(hand_view([0.5])).base.key, table([-0.125]))
    assert str(Rule.parse("power | top(1)")) == "power(2) | top(1)"


def test_function_parts_with_equal_knobs_are_equal():
    @score
    def power(view, exponent: float = 2.0):
        return Scores.probability(view.confidence**exponent)

    one, same, other = (Rule.parse(f"power({e}) | top(1)") for e in ("2", "2.0", "3"))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other


def test_a_knob_without_default_must_be_given():
    @score
    def power(view, exponent: float):
        return Scores.probability(view.confidence**exponent)

    assert str(Rule.parse("power(2) | top(1)")) == "power(2) | top(1)"
    with pytest.raises(RuleError, match="exponent"):
        Rule.parse("power | top(1)")


def test_a_field_without_default_must_be_given():
    @register("select", "firsts")
    @dataclass(frozen=True)
    class Firsts:
        count: int

        def __call__(self, view, scores):
            return view.masked

    with pytest.raises(RuleError, match="count"):
        Rule.parse("confidence | firsts")


def test_a_class_is_a_part_and_says_what_it_needs():
    @register("modulate", "calm", "S - D", "a test")
    @dataclass(frozen=True)
    class Calm:
        """Subtracts the instability."""

        weight: float = 1.0
        needs = Needs(kl=frozenset({"cur_prev"}))

        def __call__(self, view, scores):
            return scores - self.weight * view.instability("cur_prev")

    rule = Rule.parse("confidence | calm(2) | top(1)")
    assert rule.needs == Needs(kl=frozenset({"cur_prev"}))
    assert decode(random_lookup(0), [1], rule, length=5).nfe == 5


def test_a_users_function_may_read_every_plain_field():
    seen = []

    @score
    def curious(view):
        seen.append((view.kl_prev_cur.shape, view.kl_cur_prev.shape, view.draws.shape))
        return Scores.probability(view.confidence)

    decode(random_lookup(0), [1], "curious | top(2)", length=4)
    assert seen[0] == ((1, 4),) * 3
    assert abilities_of(curious).needs == EVERYTHING


def test_a_registered_function_with_knobs_needs_what_its_row_says():
    @register("score", "scaled", needs=Needs())
    def scaled(view, scale: float = 2.0):
        return Scores.log_utility(scale * -view.entropy)

    assert Rule.parse("scaled(3) | top(1)").needs == Needs()


def test_a_taken_name_is_refused():
    with pytest.raises(RuleError, match=r"'confidence' is taken by unmask.rules.scores.confidence"):

        @score
        def confidence(view):
            return Scores.probability(view.confidence)


def test_the_same_definition_again_takes_its_own_place():
    def define(value):
        @score
        def again(view):
            return Scores.log_utility(view.confidence * value)

        return again

    define(1.0)
    second = define(-1.0)
    assert kind_named("again").target is second


def test_a_part_knows_its_row():
    part = kind_named("eb").make(gamma=0.5)
    assert kind_of(part).name == "eb"
    assert notation(part) == "eb(0.5)"


def test_an_unregistered_callable_has_no_notation():
    with pytest.raises(RuleError, match="is not a registered part"):
        notation(object())


class _Point:
    """An entry point of another package."""

    def __init__(self, name, load):
        self.name, self.value, self.load = name, f"package:{name}", load


@pytest.fixture
def plug_in(monkeypatch):
    def install(*points):
        monkeypatch.setattr("unmask.rules.registry.entry_points", lambda group: points)
        unmask.rules.registry._load.cache_clear()

    yield install
    monkeypatch.undo()
    unmask.rules.registry._load.cache_clear()


def test_a_package_may_bring_a_selection(plug_in):
    plug_in(_Point("plugged", lambda: lambda view, scores: view.masked))
    assert decode(random_lookup(0), [1], "confidence | plugged", length=4).nfe == 1


def test_a_plug_in_that_cannot_be_imported_is_named(plug_in):
    def fail():
        raise ImportError("no module named 'missing'")

    plug_in(_Point("broken", fail))
    with pytest.raises(RuleError, match=r"the plug-in 'broken' \(package:broken\) cannot be impor"):
        kinds()


def test_a_row_makes_the_function_itself_where_there_is_no_knob():
    def plain(view):
        return view.confidence

    assert Kind("plain", "score", plain).make() is plain


def test_a_decorated_function_may_say_what_it_needs():
    @unmask.selection(needs=unmask.Needs())
    def thrifty(view, scores):
        """Everything."""
        return view.masked

    assert Rule.parse("confidence | thrifty").needs == unmask.Needs()
    assert Rule.parse("confidence | thrifty").select is thrifty


def test_no_part_is_longer_than_forty_lines_beside_its_docstring():
    for kind in kinds():
        family = kind.target.__mro__ if isinstance(kind.target, type) else ()
        for target in (each for each in family if each.__module__.startswith("unmask.rules.")):
            definition = ast.parse(inspect.getsource(target)).body[0]
            docstring, *_, last = definition.body
            assert last.end_lineno - docstring.end_lineno <= 40, target.__name__
