"""Views, what parts need, and scores with their two faces."""

from __future__ import annotations

import math

import pytest
import torch

from tests.helpers import bits, hand_view, random_view, table
from unmask import Needs, RuleError, Scores
from unmask.rules.view import BOTH_KL

INF = math.inf


def test_a_row_of_a_view_is_a_view_of_one_row():
    view = random_view(0)
    row = view.row(1)
    assert row.masked.shape == (1, 9)
    assert torch.equal(row.confidence[0], view.confidence[1])
    assert torch.equal(row.trail[0], view.trail[1])
    assert torch.equal(row.progress.known[0], view.progress.known[1])
    assert row.progress.step.tolist() == [int(view.progress.step[1])]


def test_a_field_that_is_absent_stays_absent_in_a_row():
    assert hand_view([0.5]).row(0).trail is None


def test_other_candidates_change_nothing_else():
    view = hand_view([0.5, 0.6])
    fewer = view.among(bits([0, 1]))
    assert fewer.masked.tolist() == [[False, True]]
    assert fewer.confidence is view.confidence


def test_instability_is_read_in_the_asked_direction():
    view = hand_view([0.5], kl_prev_cur=table([1.0]), kl_cur_prev=table([2.0]))
    assert float(view.instability("prev_cur")) == 1.0
    assert float(view.instability("cur_prev")) == 2.0


def test_reading_an_undeclared_direction_says_what_to_declare():
    view = hand_view([0.5], kl_prev_cur=None)
    with pytest.raises(RuleError, match="reads kl_prev_cur of the view without declaring it"):
        view.instability("prev_cur")
    with pytest.raises(RuleError, match="set the part's `needs`"):
        view.declared("trail")


def test_needs_add_up():
    first = Needs(kl=frozenset({"prev_cur"}), trail=2, drift="cur_prev")
    second = Needs(kl=frozenset({"cur_prev"}), uniform_start=True, trail=1, draws=True)
    both = first | second
    assert both.kl == BOTH_KL
    assert (both.uniform_start, both.trail, both.draws, both.drift) == (True, 2, True, "cur_prev")
    assert both == second | first


def test_a_trail_needs_the_divergence_from_the_current_distribution():
    assert Needs(trail=1).directions == {"cur_prev"}
    assert Needs(trail=1).history


def test_plain_statistics_need_no_history():
    assert not Needs().history
    assert not Needs(draws=True, drift="prev_cur").history


def test_a_score_in_the_unit_interval_is_ranked_by_its_logarithm():
    scores = Scores.probability(table([1.0, 0.5, 0.0]))
    assert scores.key.tolist() == [[0.0, math.log(0.5), -INF]]
    assert scores.value.tolist() == [[1.0, 0.5, 0.0]]


def test_a_plain_score_is_its_own_value():
    scores = Scores.log_utility(table([-1.0, -2.0]))
    assert scores.key is scores.value
    assert not scores.logarithmic


def test_a_penalty_multiplies_a_score_in_the_unit_interval():
    scores = Scores.probability(table([0.9, 0.8])) - table([1.0, 0.0])
    torch.testing.assert_close(scores.value, table([0.9 * math.exp(-1), 0.8]))
    torch.testing.assert_close(scores.key, table([math.log(0.9) - 1, math.log(0.8)]))


def test_a_penalty_is_subtracted_from_a_plain_score():
    scores = Scores.log_utility(table([-1.0])) - table([0.5])
    assert scores.key.tolist() == scores.value.tolist() == [[-1.5]]


def test_keys_rank_where_values_have_underflown():
    scores = Scores.probability(table([0.9, 0.8])) - table([2000.0, 1000.0])
    assert scores.value.tolist() == [[0.0, 0.0]]
    assert scores.key[0, 1] > scores.key[0, 0]


def test_an_infinite_penalty_is_the_lowest_key_and_no_nan():
    scores = Scores.probability(table([0.9, 0.0])) - table([INF, INF])
    assert scores.key.tolist() == [[-INF, -INF]]
    assert scores.value.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("scores", [Scores.probability, Scores.log_utility], ids=["log", "plain"])
def test_deferred_positions_rank_last_and_the_rightmost_of_them_first(scores):
    value = table([0.9, 0.0, 0.8, 0.7])
    ranked = scores(value).putting_last(bits([1, 0, 0, 1]))
    assert ranked.key[0].sort(descending=True).indices.tolist() == [2, 1, 3, 0]


def test_deferred_positions_pass_no_threshold():
    ranked = Scores.probability(table([0.9, 0.8])).putting_last(bits([1, 0]))
    assert ranked.value.tolist() == [[0.0, 0.8]]
    plain = Scores.log_utility(table([-0.1, -0.2])).putting_last(bits([1, 0]))
    assert plain.value[0, 0] < -1e300
    assert plain.value[0, 1] == -0.2


def test_a_key_of_minus_infinity_still_ranks_before_the_deferred():
    ranked = Scores.probability(table([0.0, 0.9])).putting_last(bits([0, 1]))
    assert ranked.key[0, 0] > ranked.key[0, 1]
