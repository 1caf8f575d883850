"""Each selection on hand-made numbers."""

from __future__ import annotations

import math

import pytest
import torch

from tests.helpers import at_step, bits, hand_view, places, table
from unmask import RuleError, Scores, best_first, first_in
from unmask.rules.scores import confidence
from unmask.rules.select import (
    Hierarchy,
    Klass,
    LeftToRight,
    Threshold,
    TopK,
)


def chosen(select, view):
    return places(select(view, confidence(view)))


def test_best_first_orders_by_key_and_puts_candidates_first():
    order = best_first(table([-1.0, -3.0, -2.0, 0.0]), bits([1, 1, 1, 0]))
    assert order.tolist() == [[0, 2, 1, 3]]


def test_best_first_breaks_ties_to_the_lowest_position():
    assert best_first(table([-1.0] * 40), bits([1] * 40)).tolist() == [list(range(40))]


def test_a_key_of_minus_infinity_is_the_last_candidate_and_not_out():
    order = best_first(table([-math.inf, -1.0, 5.0]), bits([1, 1, 0]))
    assert order.tolist() == [[1, 0, 2]]


def test_first_in_takes_a_number_for_each_row():
    order = torch.tensor([[2, 1, 0], [0, 1, 2]])
    taken = first_in(order, torch.tensor([1, 2]), bits([1, 1, 1], [1, 1, 1]))
    assert taken.tolist() == [[False, False, True], [True, True, False]]


def test_first_in_never_leaves_the_candidates():
    assert places(first_in(torch.tensor([[0, 1, 2]]), 3, bits([1, 0, 1]))) == [0, 2]


def test_top_takes_the_k_best():
    assert chosen(TopK(2), hand_view([0.1, 0.9, 0.5])) == [1, 2]


def test_top_takes_all_that_are_left_when_there_are_fewer():
    view = hand_view([0.1, 0.9, 0.5], masked=bits([1, 0, 1]))
    assert chosen(TopK(5), view) == [0, 2]


def test_a_threshold_takes_all_above_tau():
    assert chosen(Threshold(0.4), hand_view([0.1, 0.9, 0.5])) == [1, 2]


def test_a_threshold_is_strict():
    assert chosen(Threshold(0.5), hand_view([0.5, 0.75])) == [1]


def test_a_threshold_with_ge_lets_equality_pass():
    assert chosen(Threshold(0.5, test="ge"), hand_view([0.5, 0.75])) == [0, 1]


def test_threshold_falls_back_to_the_best_position():
    assert chosen(Threshold(0.95), hand_view([0.1, 0.9, 0.5])) == [1]


def test_a_threshold_is_in_the_unit_of_the_score():
    scores = Scores.log_utility(table([-0.7, -0.1, -0.9]))
    assert places(Threshold(-0.8)(hand_view([0.5] * 3), scores)) == [0, 1]


def test_slack_also_takes_what_is_close_to_the_best():
    view = hand_view([0.6, 0.7, 0.65])
    assert chosen(Threshold(0.9, slack=0.06), view) == [1, 2]


def test_slack_looks_at_candidates_only():
    view = hand_view([0.6, 0.99, 0.65], masked=bits([1, 0, 1]))
    assert chosen(Threshold(0.9, slack=0.06), view) == [0, 2]


def _klass_view(trail, step=1, confidences=(0.95, 0.92, 0.5)):
    view = hand_view(list(confidences), trail=torch.tensor([trail], dtype=torch.float64))
    return at_step(view, step)


CALM, WILD = [0.0, 0.0], [0.0, 1.0]


def test_klass_takes_the_confident_and_calm():
    assert chosen(Klass(), _klass_view([CALM, CALM, CALM])) == [0, 1]
    assert chosen(Klass(), _klass_view([CALM, WILD, CALM])) == [0]


def test_klass_looks_at_all_of_the_last_n():
    view = _klass_view([[1.0, 0.0], CALM, CALM])
    assert chosen(Klass(n=2), view) == [1]
    assert chosen(Klass(n=1), view) == [0, 1]


def test_klass_falls_back_to_the_best_one():
    assert chosen(Klass(), _klass_view([WILD, WILD, WILD])) == [0]


def test_klass_waits_at_the_gate_for_the_first_steps_of_a_block():
    view = _klass_view([CALM, CALM, CALM], step=0)
    assert chosen(Klass(), view) == [0]
    assert chosen(Klass(gate=False), view) == [0, 1]


def test_klass_has_its_threshold_strict_or_not():
    view = _klass_view([CALM, CALM, CALM], confidences=(0.95, 0.75, 0.5))
    assert chosen(Klass(0.75), view) == [0]
    assert chosen(Klass(0.75, test="ge"), view) == [0, 1]


def test_klass_compares_its_kl_strictly():
    view = _klass_view([[0.0, 0.25], CALM, CALM])
    assert chosen(Klass(kl=0.25), view) == [1]


def test_klass_without_its_gate_follows_later_blocks():
    assert Klass(gate=False).needs.later_blocks
    assert not Klass().needs.later_blocks
    assert Klass(n=3).needs.trail == 3


def test_hierarchy_takes_the_best_of_every_run_of_masks():
    view = hand_view([0.5, 0.6, 0.9, 0.45, 0.3], masked=bits([1, 1, 0, 1, 1]))
    assert chosen(Hierarchy(), view) == [1, 3]


def test_hierarchy_takes_a_leader_only_above_low():
    view = hand_view([0.5, 0.6, 0.9, 0.35, 0.3], masked=bits([1, 1, 0, 1, 1]))
    assert chosen(Hierarchy(), view) == [1]


def test_hierarchy_takes_all_above_tau():
    view = hand_view([0.95, 0.96, 0.97])
    assert chosen(Hierarchy(), view) == [0, 1, 2]


def test_hierarchy_falls_back_to_the_best_one():
    assert chosen(Hierarchy(), hand_view([0.1, 0.3, 0.2])) == [1]


def test_left_to_right_takes_the_leftmost_mask():
    view = hand_view([0.9, 0.1, 0.9], masked=bits([0, 1, 1]))
    assert chosen(LeftToRight(), view) == [1]


def test_left_to_right_goes_on_while_the_score_is_good():
    view = hand_view([0.8, 0.9, 0.8, 0.2, 0.9])
    assert chosen(LeftToRight(0.8), view) == [0, 1, 2]


def test_left_to_right_stops_at_the_first_score_that_is_too_low():
    assert chosen(LeftToRight(0.8), hand_view([0.1, 0.9, 0.8])) == [0]


def test_left_to_right_takes_k_whatever_their_score():
    assert chosen(LeftToRight(0.8, k=2), hand_view([0.1, 0.2, 0.9, 0.3])) == [0, 1]


def test_left_to_right_stops_at_a_fixed_token():
    view = hand_view([0.9] * 5, masked=bits([0, 1, 1, 0, 1]))
    assert chosen(LeftToRight(0.8), view) == [1, 2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TopK(0), "k must be >= 1, got 0"),
        (lambda: Threshold(math.nan), "tau must be a number"),
        (lambda: Threshold(slack=-1), "slack must be >= 0, got -1"),
        (lambda: Klass(kl=0), "kl must be > 0, got 0"),
        (lambda: Klass(n=0), "n must be >= 1, got 0"),
        (lambda: Hierarchy(0.3, 0.4), "low must be <= tau, got 0.4"),
        (lambda: LeftToRight(k=0), "k must be >= 1, got 0"),
    ],
)
def test_a_selection_checks_its_knobs(make, message):
    with pytest.raises(RuleError, match=message):
        make()
