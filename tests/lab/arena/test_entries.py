"""Which rules enter the arena."""

import pytest

from unmask import LabError, UnknownName
from unmask.lab.arena.entries import OTHERS, roster
from unmask.lab.sweep.grid import along_knob
from unmask.rules.recipes import RECIPES


def entries(*arguments):
    return roster(*arguments, newline=True).entries


def test_every_recipe_enters_or_is_left_out_with_the_reason():
    rules = roster(32, newline=True)
    names = {entry.name for entry in rules.entries}
    assert names | rules.left_out.keys() == {*RECIPES, *(each.name for each in OTHERS)}
    assert rules.left_out["daedal"].startswith("its canvas grows")
    assert set(rules.left_out) == {"daedal", "paper-table1"}
    assert "no token for it" in roster(32).left_out["adablock"]


def test_the_published_setting_is_the_first_and_the_knob_follows():
    by_name = {entry.name: entry for entry in entries(32)}
    assert by_name["fast-dllm"].settings[0] == "confidence | threshold(0.9, test=ge)"
    assert "confidence | threshold(0.6, test=ge)" in by_name["fast-dllm"].settings
    assert len(set(by_name["eb"].settings)) == len(by_name["eb"].settings) == 4


def test_a_timetable_keeps_its_steps_per_token():
    (llada,) = (entry for entry in entries(64) if entry.name == "llada")
    assert llada.rule == "confidence | static(64)"
    assert llada.curve == "confidence | static(n), n = 64, 32, 16, 8"
    (prophet,) = (entry for entry in entries(64) if entry.name == "prophet")
    assert prophet.settings[-1] == "confidence | static(8) | prophet(0, steps=8)"
    assert prophet.curve.startswith("confidence | static(n) | prophet(0, steps=n), n = ")


def test_a_knob_has_at_most_four_values_beside_the_published_one():
    assert max(len(entry.settings) for entry in entries(32)) <= 5


def test_rules_that_look_back_are_told_from_those_that_do_not():
    remembers = {entry.name: entry.remembers for entry in entries(32)}
    assert all(remembers[name] for name in ("swd", "klass", "credit"))
    assert not any(remembers[name] for name in ("eb", "llada", "fast-dllm"))


def test_a_users_rule_is_added_and_an_equal_one_is_not_run_twice():
    added = entries(32, ["margin | eb({0.1,1})", "entropy | eb(0.1)"], ["eb", "swd"])
    assert [entry.name for entry in added] == ["eb", "swd", "margin | eb({0.1,1})"]
    assert added[-1].settings == ("margin | eb(0.1)", "margin | eb(1)")


def test_wrong_names_and_lonely_rules_are_refused():
    with pytest.raises(UnknownName, match="did you mean 'klass'"):
        roster(32, (), ["klas"])
    with pytest.raises(LabError, match="at least two different rules, got 1"):
        roster(32, (), ["eb"])


def test_a_rule_along_its_knob_keeps_the_other_knobs():
    assert along_knob("confidence | klass(0.9, kl=0.01)").endswith("}, kl=0.01)")
    assert along_knob("confidence | swd(5) | top(2)").startswith("confidence | swd(5) | top({1,2,")
