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
from unmask.lab.tune import Arm, Tuner, candidates, curves, halving, split
from unmask.rules.rule import Rule


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


def test_candidates_are_rules():
    grid = candidates("confidence", "eb", ["full", 16], [0.0, 5.0])
    assert len(grid) == 2 * 2 * 6
    assert [len(curve) for curve in curves(grid)] == [6] * 4
    for each in grid:
        assert str(Rule.parse(each.rule)) == each.rule


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
    grid = [Arm("confidence", lam, "eb", knob, "full") for lam in (0.0, 5.0) for knob in (0.1, 2.0)]
    with Tools() as tools:
        options = RunOptions(tmp_path / "store.sqlite")
        tuner = Tuner(usual, calibration, 24, options, tools, Counter(), said.append)
        winner = tuner.by_forwards(grid, 16)
        tuner.report(winner, held_out[:4], grid, 16)
    assert winner in grid
    text = "\n".join(said)
    assert f"chosen: {winner.rule}" in text
    assert "held-out, 4 examples" in text
    assert "regret" in text


def test_nothing_fast_enough_is_said(tmp_path):
    usual = Setting("embedded", "copy", DecodingOptions(length=16))
    calibration, _ = split(benchmark("copy").load(), 2)
    grid = [Arm("confidence", lam, "eb", 0.005, "full") for lam in (0.0, 5.0)]
    with Tools() as tools:
        options = RunOptions(tmp_path / "store.sqlite")
        tuner = Tuner(usual, calibration, 4, options, tools, Counter(), lambda line: None)
        with pytest.raises(LabError, match=r"no setting stays within 0\.5 forwards"):
            tuner.by_forwards(grid, 0.5)
