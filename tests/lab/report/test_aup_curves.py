"""AUP of the curves that a store holds."""

from __future__ import annotations

import pytest

from tests.lab.makers import asks
from tests.lab.stores import rows_of, solved, summary, trial
from unmask.lab.aup import RatePoint, aup
from unmask.lab.report.aup_curves import contests
from unmask.lab.summary import Summary


def at(gamma, pattern, nfe, rule="confidence | eb({})", **changes):
    counters = {"nfe": nfe, "nfe_eos": nfe // 2, "tokens": 8, "written": 32}
    return summary(pattern, rule=rule.format(gamma), counters=counters, **changes)


SLOW, FAST = at(0.05, "1111111110", 32), at(0.5, "1111111110", 8)
RIVAL = [at(g, "1" * 10, n, "confidence | swd(5) | eb({})") for g, n in ((0.05, 32), (0.5, 16))]


def test_the_figure_is_the_aup_of_the_summaries():
    (contest,) = contests([SLOW, FAST])
    nominal, effective = contest.scored
    assert nominal.area.value == aup([RatePoint(1, 90), RatePoint(4, 90)]).value == 360
    assert effective.area.value == aup([RatePoint(0.5, 90), RatePoint(2, 90)]).value
    assert [point.name for point in nominal.area.kept] == ["0.05", "0.5"]
    assert nominal.interval.low < 360 < nominal.interval.high
    assert effective.interval.low < effective.area.value < effective.interval.high


def test_y_max_is_the_best_of_all_curves_and_is_named():
    (contest,) = contests([SLOW, FAST, *RIVAL])
    assert {scored.area.best for scored in contest.scored} == {100}
    assert all(scored.best_from is RIVAL[0] for scored in contest.scored)
    assert contest.scored[0].area.value < 360


def test_points_far_below_the_slowest_are_dropped_and_kept_in_the_record():
    (contest,) = contests([SLOW, at(0.5, "1111111000", 8)])
    record = contest.scored[0].record()
    assert [point["knob"] for point in record["kept"]] == ["0.05"]
    assert [point["knob"] for point in record["dropped"]] == ["0.5"]
    assert record["rate_within_1"] == 1


def test_plainer_figures_stand_beside_it():
    (contest,) = contests([SLOW, at(0.5, "1111110000", 6)])
    scored = contest.scored[0]
    assert scored.accuracy_at_2 == pytest.approx(90 - 30 * (2 - 1) / (32 / 6 - 1))
    assert scored.accuracy_at_4 is not None
    assert contest.scored[1].accuracy_at_4 is None  # effective: no point is that fast


@pytest.mark.parametrize("change", [{"block": 16}, {"eos": "suppress"}, {"length": 64}])
def test_points_that_differ_in_more_than_the_knob_are_no_curve(change):
    assert contests([SLOW, at(0.5, "1111111110", 8, **change)]) == []


def test_one_point_is_no_curve():
    assert contests([SLOW, at(0.5, "1111111110", 8, "margin | eb({})")]) == []


def test_a_trial_with_fewer_examples_is_left_out_with_the_reason():
    (contest,) = contests([SLOW, FAST, at(2, "11", 4)])
    assert [point.name for point in contest.scored[0].area.kept] == ["0.05", "0.5"]
    (text,) = contest.left_out
    assert text.startswith("confidence | eb(2) (full window): 8 examples")


def test_a_trial_that_writes_nothing_has_no_speed():
    empty = Summary.of(
        trial(rule="confidence | eb(2)"), rows_of(solved("1" * 10, tokens=0), asked=asks(10))
    )
    (contest,) = contests([SLOW, FAST, empty])
    assert "it wrote no token before the end" in contest.left_out[0]


def test_draws_without_any_token_leave_the_interval_open():
    rows = rows_of([(True, {"tokens": 0}), (True, {"tokens": 8})])
    pair = [Summary.of(trial(rule=f"confidence | eb({gamma})"), rows) for gamma in (1, 2)]
    nominal, effective = contests(pair)[0].scored
    assert nominal.interval is not None
    assert effective.interval is None
    assert effective.record()["interval"] is None
