"""Lemma 1 and the Sensitivity-Dependency Bound: hand-made joints first, then random ones."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.paths import ROOT
from unmask.cli import theory as command
from unmask.errors import UnmaskError
from unmask.studies import theory

LOG2 = math.log(2)
PAGE = ROOT / "docs" / "theory.md"


def measure(table, known=0, revealed=1):
    """One joint, an axis per position: the target, then the known, the revealed and the rest."""
    joint = np.asarray(table, dtype=np.float64)
    sizes = [1, known, revealed, joint.ndim - 1 - known - revealed]
    joint = joint.reshape(1, *(joint.shape[0] ** size for size in sizes))
    return {name: value[0] for name, value in theory.measure(joint)._asdict().items()}


def slow_measure(joint):
    """Forward, reverse, gain and mutual information by plain loops over the definition."""

    def p(**fixed):
        index = tuple(fixed.get(name, slice(None)) for name in "icrs")
        return float(joint[index].sum())

    forward = reverse = gain = mutual = 0.0
    for i, c, r in itertools.product(*map(range, joint.shape[:3])):
        if p(c=c, r=r) > 0:
            current, previous = p(i=i, c=c, r=r) / p(c=c, r=r), p(i=i, c=c) / p(c=c)
            if current > 0:
                forward += p(c=c, r=r) * current * math.log(current / previous)
                gain += p(i=i, c=c, r=r) * math.log(current / previous)
            if previous > 0:
                ratio = math.log(previous / current) if current > 0 else math.inf
                reverse += p(c=c, r=r) * previous * ratio
        for s in range(joint.shape[3]):
            if (here := p(i=i, c=c, r=r, s=s)) > 0:
                mutual += here * math.log(here * p(c=c) / (p(i=i, c=c) * p(c=c, r=r, s=s)))
    return forward, reverse, gain, mutual


def parse(*argv):
    top = argparse.ArgumentParser()
    command.add(top.add_subparsers(required=True))
    return top.parse_args(["theory", *argv])


# Hand-made joints


def test_two_bits_that_always_agree_gain_log_2():
    actual = measure([[0.5, 0], [0, 0.5]])
    assert actual["forward"] == pytest.approx(LOG2, abs=1e-15)
    assert actual["gain"] == pytest.approx(LOG2, abs=1e-15)
    assert actual["mutual"] == pytest.approx(LOG2, abs=1e-15)


def test_two_bits_that_always_agree_make_the_other_direction_infinite():
    assert measure([[0.5, 0], [0, 0.5]])["reverse"] == math.inf


def test_independent_bits_gain_nothing_in_either_direction():
    actual = measure([[0.42, 0.28], [0.18, 0.12]])
    for name in ("forward", "reverse", "gain", "mutual"):
        assert actual[name] == pytest.approx(0, abs=1e-15)
    assert actual["entropy"] == pytest.approx(-0.7 * math.log(0.7) - 0.3 * math.log(0.3))


def test_a_copy_of_what_was_revealed_has_nothing_left_to_learn():
    actual = measure([[0.5, 0], [0, 0.5]])
    assert actual["mutual"] - actual["gain"] == pytest.approx(0, abs=1e-15)
    assert not actual["partial"]


def parity():
    x = np.indices((2, 2, 2))
    return np.where(x.sum(0) % 2 == 0, 0.25, 0.0)


def test_one_bit_of_a_parity_moves_nothing_and_leaves_log_2():
    actual = measure(parity())
    assert actual["forward"] == pytest.approx(0, abs=1e-15)
    assert actual["mutual"] - actual["gain"] == pytest.approx(LOG2, abs=1e-15)
    assert actual["partial"]


def test_the_second_bit_of_a_parity_tells_all():
    assert measure(parity(), known=1)["forward"] == pytest.approx(LOG2, abs=1e-15)


def test_a_token_known_before_the_step_is_no_gain():
    copies = np.zeros((2, 2, 2))
    copies[0, 0, 0] = copies[1, 1, 1] = 0.5
    actual = measure(copies, known=1)
    assert actual["forward"] == actual["reverse"] == 0
    assert actual["entropy"] == pytest.approx(0, abs=1e-15)


def test_a_single_outcome_can_exceed_the_bound():
    # x_i = x_R, which is 1 once in ten: H = 0.325, but seeing the 1 is worth log 10.
    actual = measure([[0.9, 0], [0, 0.1]])
    assert actual["mutual"] == pytest.approx(0.325083, abs=1e-6)
    assert actual["single"] == pytest.approx(math.log(10))


@pytest.mark.parametrize("kind", theory.KINDS)
def test_measures_agree_with_loops_over_the_definition(kind):
    rng = np.random.default_rng(5)
    for _ in range(4):
        joint = theory.with_random_roles(theory.random_joints(kind, 2, rng), rng)
        actual = theory.measure(joint)
        ours = np.stack([actual.forward, actual.reverse, actual.gain, actual.mutual], -1)
        assert ours == pytest.approx(np.array([slow_measure(one) for one in joint]), abs=1e-12)


# The counter-example


def test_the_counter_example_has_the_numbers_worked_out_by_hand():
    example = theory.counter_example()
    assert np.sum(example.joint) == pytest.approx(1)
    assert example.forward == pytest.approx(0.98 * math.log(1.96) + 0.02 * math.log(0.04))
    assert example.mutual == pytest.approx(example.forward)
    assert example.reverse == pytest.approx(math.log(25 / 7))


def test_the_counter_example_exceeds_the_mutual_information_and_even_the_entropy():
    example = theory.counter_example()
    assert example.reverse > example.mutual + 0.6
    assert example.reverse > example.entropy + 0.5


# Random joints


@pytest.fixture(scope="module")
def result():
    return theory.check(1000, seed=1)


def test_lemma_and_bound_hold_up_to_rounding(result):
    assert result.total.equality_violation < 1e-12
    assert result.total.bound_violation < 1e-12
    assert result.largest_violation < 1e-12


def test_every_kind_of_joint_is_drawn_and_the_counts_add_up(result):
    assert set(result.kinds) == set(theory.KINDS)
    assert sum(row.cases for row in result.kinds.values()) == result.total.cases == 1000
    exceeding = sum(row.reverse_exceeds for row in result.kinds.values())
    assert exceeding == result.total.reverse_exceeds


def test_the_other_direction_often_exceeds_the_bound_also_without_zeros(result):
    assert result.kinds["dense"].reverse_infinite == 0
    assert result.kinds["dense"].reverse_exceeds > 50
    assert 0 < result.total.reverse_infinite < result.total.reverse_exceeds < 1000
    assert result.total.reverse_differs >= result.total.reverse_exceeds
    assert 1 < result.total.worst_excess < math.inf


def test_a_step_can_move_a_position_more_than_what_is_left(result):
    assert 0 < result.total.overtakes < result.total.partial < 1000


def test_zeros_in_the_joint_give_no_nan():
    rng = np.random.default_rng(3)
    zeros = 0
    for kind in ("sparse", "copies", "parity"):
        for _ in range(20):
            joint = theory.with_random_roles(theory.random_joints(kind, 5, rng), rng)
            zeros += int((joint == 0).sum())
            for name, value in theory.measure(joint)._asdict().items():
                assert not np.isnan(value).any(), name
                assert name == "reverse" or np.isfinite(value).all(), name
    assert zeros > 1000


def test_random_joints_are_distributions():
    rng = np.random.default_rng(4)
    for kind in theory.KINDS:
        joint = theory.random_joints(kind, 5, rng)
        assert (joint >= 0).all()
        assert joint.reshape(5, -1).sum(-1) == pytest.approx(1)


def test_roles_keep_the_joint_and_always_reveal_something():
    rng = np.random.default_rng(6)
    for _ in range(50):
        joint = theory.random_joints("dense", 2, rng)
        dealt = theory.with_random_roles(joint, rng)
        assert dealt.ndim == 5
        assert dealt.shape[1] == joint.shape[1]
        assert dealt.shape[3] > 1
        assert np.array_equal(np.sort(dealt.ravel()), np.sort(joint.ravel()))


def test_the_seed_decides_everything():
    assert theory.check(60, seed=7) == theory.check(60, seed=7)
    assert theory.check(60, seed=7) != theory.check(60, seed=8)


@pytest.mark.parametrize("cases", [1, 4, 5, 6, 23])
def test_exactly_as_many_cases_as_asked_for_are_run(cases):
    assert theory.check(cases).total.cases == cases


# Wrong quantities are caught


def test_the_check_fails_with_the_kl_the_other_way_round(monkeypatch):
    right = theory._kl
    monkeypatch.setattr(theory, "_kl", lambda p, q: right(q, p))
    assert not theory.check(40).largest_violation < theory.TOLERANCE


def test_the_bound_check_fails_when_the_kl_is_slightly_too_large(monkeypatch):
    right = theory._kl
    monkeypatch.setattr(theory, "_kl", lambda p, q: right(p, q) * (1 + 1e-6))
    total = theory.check(40).total
    assert total.bound_violation > theory.TOLERANCE
    assert total.equality_violation > theory.TOLERANCE


def test_a_nan_counts_as_a_violation(monkeypatch):
    monkeypatch.setattr(theory, "_kl", lambda p, q: (p * q).sum(1) * math.nan)
    assert not theory.check(40).largest_violation < theory.TOLERANCE


# The command


def test_the_command_reports_and_succeeds(capsys):
    assert command.run(parse("--cases", "40")) == 0
    text = capsys.readouterr().out
    assert "40 random joints by enumeration, seed 0" in text
    assert "Largest violation of either" in text
    assert "What it does not say" in text


def test_the_command_fails_when_the_lemma_does(monkeypatch, capsys):
    right = theory._kl
    monkeypatch.setattr(theory, "_kl", lambda p, q: right(q, p))
    assert command.run(parse("--cases", "40")) == 1


def test_json_holds_the_numbers_of_the_result(capsys):
    assert command.run(parse("--cases", "40", "--seed", "2", "--json")) == 0
    told = json.loads(capsys.readouterr().out)
    result = theory.check(40, seed=2)
    assert told["total"] == vars(result.total)
    assert told["largest_violation"] == result.largest_violation
    assert told["counter_example"]["reverse"] == result.counter_example.reverse


@pytest.mark.parametrize("argv", [("--cases", "0"), ("--cases", "-3"), ("--seed", "-1")])
def test_bad_numbers_are_refused_in_one_line(argv):
    wrong = rf"{argv[0][2:]} must be .*, got {argv[1]}$"
    with pytest.raises(UnmaskError, match=wrong):
        command.run(parse(*argv))


def test_the_command_is_registered_without_importing_numpy_or_torch():
    code = "import sys, unmask.cli.theory; sys.exit(bool({'numpy', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_page_shows_what_the_command_prints(result):
    def shape(text):
        return " ".join(re.sub(r"[\d.]+(e[+-]\d+)?", "#", text).split())

    shown = re.search(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shape(shown.group(1)) == shape("\n".join(theory.lines(result)))
