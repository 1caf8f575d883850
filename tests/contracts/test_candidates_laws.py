"""Laws for every candidates stage of the table."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import pad

from tests.helpers import alone, random_view, texts, widened
from unmask import Rule

STAGES = {
    text: Rule.parse(f"confidence | {text} | top(1)").candidates[0]
    for text in (
        *texts("candidates"),
        "frontier(1)",
        "frontier(3)",
        "frontier(3, unit=positions)",
        "frontier(3, most=4)",
    )
}
SEEDS = st.integers(0, 2**16)

every_stage = pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)


@every_stage
@given(seed=SEEDS)
def test_only_masks_are_left_and_at_least_one(stage, seed):
    view = random_view(seed)
    left = stage(view)
    assert not (left & ~view.masked).any()
    assert torch.equal(left.any(-1), view.masked.any(-1))


@every_stage
@given(seed=SEEDS)
def test_rows_are_narrowed_independently(stage, seed):
    view = random_view(seed)
    whole = stage(view)
    for b in range(3):
        assert torch.equal(whole[b : b + 1], stage(alone(view, b)))


@every_stage
@given(seed=SEEDS, columns=st.integers(1, 5))
def test_columns_beyond_the_window_change_no_candidate(stage, seed, columns):
    view = random_view(seed)
    assert torch.equal(stage(widened(view, columns)), pad(stage(view), (0, columns)))
