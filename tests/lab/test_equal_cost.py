"""Fronts, and rules at equal forwards."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lab.stores import summary
from unmask import LabError
from unmask.lab.equal_cost import RuleCurve, at_equal_cost, front
from unmask.lab.stats import mcnemar


def at(pattern, nfe, rule="confidence | eb(0.1)", **changes):
    """A trial with these outcomes at this many forwards."""
    return summary(pattern, counters={"nfe": nfe}, rule=rule, **changes)


def test_the_front_holds_what_nothing_dominates_by_its_cost():
    cheap, dear = at("1000", 2), at("1111", 9)
    worse, level = at("0100", 3), at("1100", 9)
    assert front([dear, worse, level, cheap]) == [cheap, dear]


def test_equal_trials_are_both_on_the_front():
    one, other = at("1010", 4), at("0101", 4, rule="margin | eb(0.1)")
    assert front([one, other]) == [one, other]


def test_between_two_settings_a_curve_is_their_mixture():
    curve = RuleCurve("eb", (at("1100", 8), at("1000", 4)))
    assert curve.forwards.tolist() == [4, 8]
    assert curve.solved_at(4).tolist() == [1, 0, 0, 0]
    assert curve.solved_at(5).tolist() == [1, 0.25, 0, 0]
    assert curve.solved_at(8).tolist() == curve.solved_at(100).tolist() == [1, 1, 0, 0]
    assert curve.solved_at(3.9) is None


def test_of_two_settings_at_one_cost_the_better_counts():
    curve = RuleCurve("eb", (at("1000", 4), at("1110", 4)))
    assert curve.solved_at(4).tolist() == [1, 1, 1, 0]


@given(st.floats(2, 9), st.floats(0, 7))
def test_the_mean_over_a_range_agrees_with_a_fine_grid(low, width):
    curve = RuleCurve("eb", (at("1000", 2), at("0110", 5), at("1111", 9)))
    places = np.linspace(low, low + width, 4001)
    values = np.array([curve.solved_at(place) for place in places])
    grid = (values[1:] + values[:-1]).mean(0) / 2
    assert curve.mean_over(low, low + width) == pytest.approx(grid, abs=2e-3)


def test_two_single_settings_are_compared_as_they_are():
    first, second = at("1100000000", 8), at("1011111100", 6, rule="margin | eb(0.1)")
    pair = at_equal_cost(RuleCurve("a", (first,)), RuleCurve("b", (second,)))
    assert (pair.low, pair.high) == (8, 8)
    assert (pair.first, pair.second) == pytest.approx((0.2, 0.7))
    assert pair.difference == pytest.approx(0.5)
    assert pair.p == mcnemar(1, 6)
    assert pair.interval.low < 0.5 < pair.interval.high


def test_curves_are_compared_over_the_forwards_that_both_have():
    first = RuleCurve("a", (at("1000", 2), at("1100", 6), at("1110", 20)))
    second = RuleCurve("b", (at("1100", 4), at("1110", 8)))
    pair = at_equal_cost(first, second)
    assert (pair.low, pair.high) == (4, 8)
    assert pair.difference > 0
    swapped = at_equal_cost(second, first)
    assert swapped.difference == pytest.approx(-pair.difference)
    assert swapped.p == pair.p


def test_the_same_curve_twice_differs_by_nothing():
    curve = RuleCurve("a", (at("1000", 2), at("1100", 6)))
    pair = at_equal_cost(curve, curve)
    assert (pair.difference, pair.p) == (0, 1)


def test_unequal_settings_are_refused_with_the_reason():
    one = RuleCurve("a", (at("10", 2),))
    with pytest.raises(LabError, match="a and b cannot be compared: the length is 32 in one and"):
        at_equal_cost(one, RuleCurve("b", (at("10", 2, length=48),)))
    with pytest.raises(LabError, match="cannot form a curve: the task is"):
        RuleCurve("a", (at("10", 2), at("10", 3, task="code")))
    with pytest.raises(LabError, match="has no trial"):
        RuleCurve("a", ())
