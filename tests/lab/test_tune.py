"""Successive halving finds good settings on few examples."""

from __future__ import annotations

import random

import pytest

from tests.lab.sweep.test_run import Counter
from unmask.decoding.options import DecodingOptions
from unmask.errors import LabError
from unmask.lab.benchmarks import benchmark
from unmask.lab.grading import Tools
from unmask.lab.sweep.grid import Setting
from unmask.lab.sweep.run import RunOptions
from unmask.lab.tune import Arm, Tuner, candidates, curves, halving, short_form, split
from unmask.rules.registry import kinds, selection
from unmask.rules.rule import Rule
from unmask.text.session import Session


def true_values(arms, count):
    return [float(arm) for arm in arms]


def test_the_best_arm_wins_where_nothing_is_left_to_chance():
    rounds = halving(list(range(16)), most=100, budget=640, value=true_values)
    assert rounds[-1].values[0] == (15, 15.0)
    assert [len(each.values) for each in rounds] == [16, 8, 4, 2]
    assert [each.examples for each in rounds] == [10, 20, 40, 80]


def test_the_budget_is_never_exceeded():
    for arms in (2, 3, 5, 17, 60):
        rounds = halving(list(range(arms)), most=50, budget=1000, value=true_values)
        assert sum(len(each.values) * each.examples for each in rounds) <= 1000


def test_noise_seldom_hides_the_best_by_much():
    lost = []
    for seed in range(40):
        rng = random.Random(seed)
        shares = [0.3 + 0.02 * arm for arm in range(20)]

        def value(arms, count, shares=shares, rng=rng):
            return [sum(rng.random() < shares[arm] for _ in range(count)) / count for arm in arms]

        chosen = halving(list(range(20)), most=200, budget=2000, value=value)[-1].values[0][0]
        lost.append(max(shares) - shares[chosen])
    assert sum(lost) / len(lost) < 0.06  # a random choice loses 0.19


def test_a_budget_that_is_too_small_says_what_is_needed():
    with pytest.raises(LabError, match="--budget must be >= 64 for 16 arms, got 63"):
        halving(list(range(16)), most=100, budget=63, value=true_values)


def test_one_arm_needs_one_round():
    assert len(halving([1], most=10, budget=10, value=true_values)) == 1


def test_the_short_form_is_a_rule_with_the_grid_of_the_selection():
    text = short_form("confidence", "eb", "0,5")
    assert text == "confidence | swd({0,5}) | eb({0.005,0.05,0.1,0.5,1,2})"
    grid = candidates([text], ["full", 16])
    assert len(grid) == 2 * 2 * 6
    assert [len(curve) for curve in curves(grid)] == [6] * 4
    assert str(grid[0]) == "confidence | eb(0.005), full window"
    for each in grid:
        assert str(Rule.parse(each.rule)) == each.rule


def test_every_selection_brings_values_to_try():
    for kind in kinds("select"):
        if kind.target.__module__.startswith("unmask."):
            assert len(candidates([short_form("confidence", kind.name, "0")], ["full"])) >= 4


def test_a_selection_without_a_grid_says_how_to_write_one():
    @selection
    def mine_without_grid(view, scores, k: int = 3):
        """Takes everything."""
        return view.masked

    with pytest.raises(LabError, match=r"declares no grid; .* --rule 'margin \| mine_without_grid"):
        short_form("margin", "mine_without_grid")
    with pytest.raises(LabError, match="swd is a modulator, not a selection; selections: top"):
        short_form("margin", "swd")


def test_any_knob_of_any_part_is_tuned():
    text = "confidence | swd({0,1,5}, kl=cur_prev) | klass({0.8,0.9}, kl={0.001,0.01}) | cap({2,4})"
    grid = candidates([text], ["full"])
    assert len(grid) == 3 * 2 * 2 * 2
    assert [len(curve) for curve in curves(grid)] == [4] * 6  # lam and cap name the curve
    assert grid[-1].curve == "confidence | swd(5, kl=cur_prev) | klass(·) | cap(4), full window"


def test_equal_rules_are_tried_once():
    assert len(candidates(["confidence | swd({0,5}, start={uniform,single}) | top(1)"], [8])) == 3


def test_a_recipe_is_tuned_in_its_own_blocks():
    (own,) = candidates(["swd-block32"])
    assert str(own) == "swd-block32, the recipe's blocks"
    for length, block in ((48, 32), (16, None)):
        setting = own.setting(Setting("embedded", "copy", DecodingOptions(length=length)))
        assert Session().resolve(setting.options).block == block
    assert candidates(["swd-block32"], ["full"]) == [Arm("swd-block32", "full")]
    assert [arm.block for arm in candidates(["confidence | top(1)"])] == ["full", 32]


def test_the_splits_share_no_example_and_stay_the_same():
    examples = benchmark("words").load()
    calibration, held_out = split(examples, 20)
    assert len(calibration) == 20
    assert {e.id for e in calibration}.isdisjoint(e.id for e in held_out)
    assert len(calibration) + len(held_out) == len(examples)
    assert split(examples[::-1], 20)[0] == calibration
    with pytest.raises(LabError, match="--calibration must be from 1 to 199"):
        split(examples, len(examples))


def test_tuning_on_the_embedded_model_tells_its_choice_and_its_regret(tmp_path):
    said = []
    usual = Setting("embedded", "copy", DecodingOptions(length=16))
    calibration, held_out = split(benchmark("copy").load(), 8)
    grid = candidates(["confidence | swd({0,5}) | eb({0.1,2})"], ["full"])
    with Tools() as tools:
        options = RunOptions(tmp_path / "store.sqlite")
        tuner = Tuner(usual, calibration, 24, options, tools, Counter(), said.append)
        winner = tuner.by_forwards(grid, 16)
        tuner.report(winner, held_out[:4], grid, 16)
        tuner.report(winner, held_out[:4], (), 0.5)
    assert winner in grid
    text = "\n".join(said)
    assert f"chosen: {winner.rule}" in text
    assert "held-out, 4 examples" in text
    assert "regret" in text
    told = [line for line in said if line.startswith("This is more than the ")]
    assert told == [
        "This is more than the 0.5 forwards that were asked for; to stay within them on new "
        "examples, ask for fewer."
    ]


def test_nothing_fast_enough_is_said(tmp_path):
    usual = Setting("embedded", "copy", DecodingOptions(length=16))
    calibration, _ = split(benchmark("copy").load(), 2)
    grid = candidates(["confidence | swd({0,5}) | eb(0.005)"], ["full"])
    with Tools() as tools:
        options = RunOptions(tmp_path / "store.sqlite")
        tuner = Tuner(usual, calibration, 4, options, tools, Counter(), lambda line: None)
        with pytest.raises(LabError, match=r"no setting stays within 0\.5 forwards"):
            tuner.by_forwards(grid, 0.5)
        for wrong in (-1, 0, float("nan"), float("inf")):
            with pytest.raises(LabError, match=f"--nfe must be a number > 0, got {wrong:g}"):
                tuner.by_forwards(grid, wrong)
