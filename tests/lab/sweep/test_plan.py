"""What a trial asks of every example."""

from __future__ import annotations

import pytest

from tests.lab.sweep.test_run import works
from tests.paths import ROOT
from unmask.decoding.options import OPTIONS
from unmask.errors import LabError
from unmask.lab.sweep.grid import settings_of, sweep_of
from unmask.lab.sweep.plan import Sessions, plan, work_of
from unmask.rules.rule import Rule

# A value for every option that is not its default, and options that it needs.
OTHERS = {
    "rule": ("confidence | top(2)", {}), "length": (40, {}), "block": (8, {}),
    "eos": ("stop", {}), "steps": (20, {}), "history": (8, {}), "temperature": (0.5, {}),
    "top_p": (0.9, {"temperature": 0.5}), "top_k": (5, {"temperature": 0.5}),
    "tempered": (True, {"temperature": 0.5}), "seed": (7, {}), "cache": ("prefix", {}),
    "guidance": (1.5, {}), "dtype": ("bfloat16", {}), "mask_id": (1, {}), "family": ("llada", {}),
    "sub_block": (2, {"model": str(ROOT / "tests/golden/models/sdar-tiny")}),
    "template_args": ('{"enable_thinking": false}', {}), "longest": (60, {"length": "auto"}),
    "quantize": ("int8", {}), "pack": (True, {}), "language": ("regex:[0-9]+", {}),
}  # fmt: skip


def seeds(work):
    return {ask.example: work.request(ask).seed for ask in work.asks}


def test_every_example_has_a_seed_of_its_own_that_no_other_setting_changes():
    first, other_rule = works(limit=4)
    assert len(set(seeds(first).values())) == 4
    assert seeds(other_rule) == seeds(first)
    (fewer, _), (reseeded, _) = works(limit=2), works(limit=4, seed=1)
    assert seeds(fewer).items() < seeds(first).items()
    assert not set(seeds(reseeded).values()) & set(seeds(first).values())


def trial_of(rule, **options):
    table = {"task": "words", "rule": rule, "limit": 1, **options}
    (work,) = plan(sweep_of(table, "", {}, "a test").settings, None)
    return work.trial


@pytest.mark.parametrize(
    ("rule", "options", "block", "length"),
    [
        ("swd", {}, 16, 48),  # the recipe has neither, so both are the preset's
        ("swd-block32", {}, 32, 48),
        ("swd-block32", {"block": 8}, 8, 48),
        ("swd-block32", {"block": "full"}, None, 48),
        ("klass", {}, None, 48),  # its blocks of 64 are wider than the answer
        ("dream", {"length": 32}, 16, 32),
        ("confidence | swd(1) | eb(0.1)", {}, 16, 48),  # the same rule, without the name
    ],
)
def test_a_recipe_keeps_its_block_unless_another_is_asked_for(rule, options, block, length):
    trial = trial_of(rule, **options)
    assert (trial.block, trial.length) == (block, length)
    assert trial.rule == str(Rule.parse(rule))


def test_a_recipe_and_its_rule_in_the_same_blocks_are_one_trial():
    rules = ["swd-block32", "confidence | swd(1) | eb(0.1)"]
    table = {"task": "words", "rule": rules, "block": 32, "limit": 1}
    assert len(plan(sweep_of(table, "", {}, "a test").settings, None)) == 1


def test_a_recipe_longer_than_the_models_context_is_refused_with_what_to_do():
    with pytest.raises(LabError, match="llada writes 256 tokens, and embedded has 128 positions"):
        trial_of("llada")
    assert trial_of("llada", length=48).length == 48


def test_arguments_that_the_chat_template_does_not_use_are_told_once():
    rules = ["confidence | top(1)", "confidence | top(2)"]
    table = {"task": "words", "rule": rules, "limit": 1, "template_args": "thinking=no"}
    with pytest.warns(UserWarning, match="does not use thinking") as told:
        plan(sweep_of(table, "", {}, "a test").settings, None)
    assert len(told) == 1


def trial(sessions, **options):
    table = {"task": "words", "rule": "confidence | top(1)", **options}
    (setting,) = settings_of(table, "mine.toml")
    return work_of(setting, sessions.of(setting), []).trial


def test_every_option_is_part_of_a_trials_key():
    sessions = Sessions()
    assert set(OTHERS) == set(OPTIONS)
    for name, (value, needed) in OTHERS.items():
        with_it, without = trial(sessions, **needed, **{name: value}), trial(sessions, **needed)
        assert with_it.record().get(name) == value, name
        assert with_it.key != without.key, name
