"""Accuracy under parallelism, by the leaderboard's formula."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.errors import LabError
from unmask.lab.aup import RatePoint, accuracy_at, aup, aup_interval, rate_within

POINTS = st.lists(
    st.builds(RatePoint, st.floats(0.1, 50), st.floats(1, 100)), min_size=1, max_size=6
)


def test_one_point_is_rate_times_accuracy():
    assert aup([RatePoint(2, 70)]).value == 140


def test_the_leaderboards_fast_dllm_on_gsm8k():
    """Vanilla 72.55 at one token per forward, 74.68 at 2.77; d3LLM's table says 205.8."""
    assert aup([RatePoint(1, 72.55), RatePoint(2.77, 74.68)], best=74.68).value == pytest.approx(
        72.55 + 1.77 * (72.55 * math.exp(-3 * (1 - 72.55 / 74.68)) + 74.68) / 2
    )


def test_points_more_than_five_below_the_slowest_are_dropped():
    area = aup([RatePoint(1, 80), RatePoint(4, 74.9), RatePoint(2, 75)])
    assert [point.rate for point in area.kept] == [1, 2]
    assert [point.rate for point in area.dropped] == [4]


def test_a_better_rival_lowers_the_weight_of_all_but_the_first_term():
    points = [RatePoint(1, 70), RatePoint(3, 70)]
    alone, beside = aup(points), aup(points, best=80)
    assert alone.value == 210
    assert beside.value == pytest.approx(70 + 140 * math.exp(-3 / 8))


@given(POINTS)
def test_the_order_of_points_does_not_matter(points):
    assert aup(points).value == pytest.approx(aup(points[::-1]).value)


@given(POINTS)
def test_the_area_never_exceeds_the_greatest_rate_at_the_best_accuracy(points):
    area = aup(points)
    assert 0 < area.value <= max(p.rate for p in area.kept) * area.best * (1 + 1e-9)


def test_points_that_make_no_sense_are_refused():
    for points in ([], [RatePoint(0, 50)], [RatePoint(1, 101)]):
        with pytest.raises(LabError):
            aup(points)
    with pytest.raises(LabError, match="best must be at least"):
        aup([RatePoint(1, 70)], best=60)


def test_the_interval_holds_the_area_and_shrinks_with_more_examples():
    rates = [[1.0] * 400, [3.0] * 400]
    solved = [[i % 4 != 0 for i in range(400)], [i % 4 != 1 for i in range(400)]]
    few = aup_interval([each[:40] for each in rates], [each[:40] for each in solved], samples=300)
    many = aup_interval(rates, solved, samples=300)
    assert many.low < aup([RatePoint(1, 75), RatePoint(3, 75)]).value < many.high
    assert many.high - many.low < few.high - few.low


def test_accuracy_between_two_points_lies_on_their_line():
    points = [RatePoint(4, 60), RatePoint(2, 80)]
    assert accuracy_at(points, 3) == 70
    assert accuracy_at(points, 2) == 80
    assert accuracy_at(points, 5) is None


def test_the_rate_within_a_loss():
    points = [RatePoint(1, 80), RatePoint(2, 79.5), RatePoint(4, 78)]
    assert rate_within(points) == 2
    assert rate_within(points, 2) == 4
