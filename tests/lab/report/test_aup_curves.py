"""AUP of the curves that a store holds."""

from __future__ import annotations

from dataclasses import replace

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


@pytest.mark.parametrize(
    ("rule", "knob"),
    [
        ("confidence | klass(0.9, kl={})", "kl"),
        ("confidence | pc({}) | top(1)", "rate"),
        ("credit({}) | confidence | top(1)", "alpha"),
        ("mine({}) | eb(0.1)", "mine"),
        ("confidence | take(1, deep={})", "deep"),
        ("confidence | eb(0.1) | cap({})", "k"),
    ],
)
def test_any_knob_of_any_part_makes_a_curve(rule, knob):
    values = (2, 30) if "cap" in rule else (0.002, 0.3)
    pair = [at(value, "1" * 10, nfe, rule) for value, nfe in zip(values, (32, 8), strict=True)]
    (contest,) = contests(pair)
    curve = contest.scored[0].curve
    assert curve.values == tuple(map(str, values))
    assert (curve.summaries, curve.method) == (tuple(pair), rule.format("·"))


def test_a_default_that_is_not_written_is_a_point_of_the_curve():
    pair = [at(value, "1" * 10, 8, "confidence | klass(0.9{})") for value in ("", ", kl=0.01")]
    (contest,) = contests(pair)
    assert contest.scored[0].curve.values == ("0.001", "0.01")


def test_a_grid_of_two_knobs_is_a_curve_for_each_value_of_the_second():
    grid = [
        at(conf, "1" * 10, 8, f"confidence | klass({{}}, kl={kl})")
        for conf in (0.8, 0.9)
        for kl in (0.01, 0.1)
    ]
    (contest,) = contests(grid)
    assert [each.curve.method for each in contest.scored[::2]] == [
        "confidence | klass(·, kl=0.01)",
        "confidence | klass(·, kl=0.1)",
    ]


def test_two_versions_of_a_rule_are_two_curves():
    points = [(0.05, 32), (0.5, 8)]
    trials = [
        replace(at(gamma, "1" * 10, nfe, "mine | eb({})", parts=version), version=version)
        for version in ("a1", "b2")
        for gamma, nfe in points
    ]
    (contest,) = contests(trials)
    assert [each.curve.name for each in contest.scored[::2]] == [
        "mine | eb(·) [version a1]",
        "mine | eb(·) [version b2]",
    ]
