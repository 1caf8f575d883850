"""Selections of a best-first prefix: entropy bound, factor."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.helpers import bits, hand_view, places, table
from unmask import RuleError, Scores
from unmask.rules.factor import Factor
from unmask.rules.prefixes import EntropyBound, longest_prefix
from unmask.rules.scores import confidence


def chosen(select, view):
    return places(select(view, confidence(view)))


def test_the_longest_prefix_ends_at_the_first_failure():
    order = torch.tensor([[3, 1, 0, 2]])
    assert places(longest_prefix(bits([1, 1, 0, 1]), order, bits([1, 1, 1, 1]))) == [1, 3]


def test_the_longest_prefix_holds_at_least_one():
    order = torch.tensor([[1, 0]])
    assert places(longest_prefix(bits([0, 0]), order, bits([1, 1]))) == [1]


def test_the_entropy_bound_does_not_count_the_largest_entropy():
    view = hand_view([0.9, 0.8, 0.7, 0.6], entropy=table([0.05, 0.04, 0.5, 0.05]))
    assert chosen(EntropyBound(0.1), view) == [0, 1, 2]  # .09; then .14 is too much
    assert chosen(EntropyBound(0.15), view) == [0, 1, 2, 3]


def test_the_entropy_bound_takes_the_best_alone_whatever_its_entropy():
    view = hand_view([0.9, 0.8], entropy=table([5.0, 4.0]))
    assert chosen(EntropyBound(0.0), view) == [0]


def test_the_entropy_bound_reads_the_raw_entropy():
    view = hand_view([0.9, 0.8], entropy=table([5.0, 5.0]), raw_entropy=table([0.0, 0.0]))
    assert chosen(EntropyBound(0.0), view) == [0, 1]


def test_the_entropy_bound_accepts_equality():
    view = hand_view([0.9, 0.8], entropy=table([0.25, 0.5]))
    assert chosen(EntropyBound(0.25), view) == [0, 1]


def test_the_entropy_bound_takes_its_maximum_row_by_row():
    view = hand_view([0.9, 0.8], entropy=table([0.25, 0.5]))
    both = replace(view, masked=bits([1, 1], [1, 1]), raw_entropy=table([0.25, 0.5], [9.0, 9.0]))
    scores = Scores.probability(table([0.9, 0.8], [0.9, 0.8]))
    taken = EntropyBound(0.25)(both, scores)
    assert taken.tolist() == [[True, True], [True, False]]


def test_factor_takes_the_longest_prefix_within_its_bound():
    view = hand_view([0.9, 0.8, 0.5])  # (n + 1)(1 - S): 0.2, 0.6, 2.0
    assert chosen(Factor(1.0), view) == [0, 1]
    assert chosen(Factor(0.5), view) == [0]
    assert chosen(Factor(2.5), view) == [0, 1, 2]


def test_factor_takes_at_least_one():
    assert chosen(Factor(0.01), hand_view([0.2, 0.1])) == [0]


def test_factor_take_takes_the_last_candidate_when_only_it_fails():
    view = hand_view([0.9, 0.8, 0.5])
    assert chosen(Factor(1.0, last="take"), view) == [0, 1, 2]


def test_factor_take_lets_a_tie_pass():
    view = hand_view([0.5, 0.5, 0.25])  # 2 * 0.5 = 1 is a tie, 3 * 0.5 is not
    assert chosen(Factor(1.0, last="take"), view) == [0]
    assert chosen(Factor(1.5, last="take"), view) == [0, 1, 2]
    assert chosen(Factor(1.5), view) == [0]


def test_factor_drop_leaves_one_out_when_all_pass():
    view = hand_view([1.0, 1.0, 1.0])
    assert chosen(Factor(1.0, last="drop"), view) == [0, 1]
    assert chosen(Factor(1.0), view) == [0, 1, 2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EntropyBound(-0.1), "gamma must be >= 0, got -0.1"),
        (lambda: Factor(0), "f must be > 0, got 0"),
    ],
)
def test_a_prefix_checks_its_knobs(make, message):
    with pytest.raises(RuleError, match=message):
        make()
