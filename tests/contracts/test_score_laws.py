"""Laws for every score of the table."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import alone, random_view, texts
from unmask import Rule

SCORES = {text: Rule.parse(f"{text} | top(1)").score for text in texts("score")}
SEEDS = st.integers(0, 2**16)

every_score = pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)


@every_score
@given(seed=SEEDS)
def test_rows_are_scored_independently(score, seed):
    view = random_view(seed)
    whole = score(view)
    for b in range(3):
        assert torch.equal(whole.key[b : b + 1], score(alone(view, b)).key)


@every_score
@given(seed=SEEDS)
def test_a_score_is_a_log_utility_of_at_most_zero(score, seed):
    view = random_view(seed)
    key = score(view).key
    assert key.dtype == torch.float64
    assert not key.isnan().any()
    assert (key[view.masked] <= 0).all()


@every_score
@given(seed=SEEDS)
def test_key_and_value_rank_alike(score, seed):
    view = random_view(seed)
    scores = score(view)
    by_key = scores.key.sort(descending=True, stable=True).indices
    by_value = scores.value.sort(descending=True, stable=True).indices
    assert torch.equal(by_key, by_value)
