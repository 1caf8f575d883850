"""Laws for every score of the table."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import alone, random_view, texts
from unmask import Rule, Scores

SCORES = {text: Rule.parse(f"{text} | top(1)").score for text in texts("score")}
SEEDS = st.integers(0, 2**16)

every_score = pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)


def _scores(score, view):
    result = score(view)
    return result if isinstance(result, Scores) else Scores.plain(result)


@every_score
@given(seed=SEEDS)
def test_rows_are_scored_independently(score, seed):
    view = random_view(seed)
    whole = _scores(score, view)
    for b in range(3):
        assert torch.equal(whole.key[b : b + 1], _scores(score, alone(view, b)).key)


@every_score
@given(seed=SEEDS)
def test_a_score_is_a_log_utility_of_at_most_zero(score, seed):
    view = random_view(seed)
    key = _scores(score, view).key
    assert key.dtype == torch.float64
    assert not key.isnan().any()
    assert (key[view.masked] <= 0).all()


@every_score
@given(seed=SEEDS)
def test_key_and_value_rank_alike(score, seed):
    view = random_view(seed)
    scores = _scores(score, view)
    by_key = scores.key.sort(descending=True, stable=True).indices
    by_value = scores.value.sort(descending=True, stable=True).indices
    assert torch.equal(by_key, by_value)
