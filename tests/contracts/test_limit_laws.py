"""Laws for every limit and every revocation of the table."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import pad

from tests.helpers import alone, random_scores, random_view, texts, widened
from unmask import Rule, Scores
from unmask.rules.memory import Edit

LIMITS = {text: Rule.parse(f"confidence | top(1) | {text}").limits[0] for text in texts("limit")}
LIMITS |= {
    text: Rule.parse(f"confidence | top(1) | {text}").limits[0]
    for text in ("floor(3)", "floor(1, steps=4)", "cap(3)", "cap(1, steps=4)")
}
REVOKES = {text: Rule.parse(f"confidence | top(1) | {text}").revoke for text in texts("revoke")}
SEEDS = st.integers(0, 2**16)

every_limit = pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
every_revoke = pytest.mark.parametrize("revoke", REVOKES.values(), ids=REVOKES)


def _chosen(view, seed):
    """Some of the masks, at least one in each row that has any."""
    generator = torch.Generator().manual_seed(seed)
    first = view.masked & (view.masked.cumsum(-1) == 1)
    return view.masked & (torch.rand(view.masked.shape, generator=generator) < 0.5) | first


@every_limit
@given(seed=SEEDS)
def test_a_limit_leaves_masks_only_and_at_least_one(limit, seed):
    view = random_view(seed)
    kept = limit(view, random_scores(seed), _chosen(view, seed))
    assert not (kept & ~view.masked).any()
    assert torch.equal(kept.any(-1), view.masked.any(-1))


@every_limit
@given(seed=SEEDS)
def test_rows_are_limited_independently(limit, seed):
    view, scores = random_view(seed), random_scores(seed)
    chosen = _chosen(view, seed)
    whole = limit(view, scores, chosen)
    for b in range(3):
        mine = Scores(scores.key[b : b + 1], scores.value[b : b + 1], True)
        assert torch.equal(whole[b : b + 1], limit(alone(view, b), mine, chosen[b : b + 1]))


@every_limit
@given(seed=SEEDS, columns=st.integers(1, 5))
def test_columns_beyond_the_window_change_no_limit(limit, seed, columns):
    view, scores = random_view(seed), random_scores(seed)
    chosen = _chosen(view, seed)
    wide = Scores(pad(scores.key, (0, columns)), pad(scores.value, (0, columns)), True)
    limited = limit(widened(view, columns), wide, pad(chosen, (0, columns)))
    assert torch.equal(limited, pad(limit(view, scores, chosen), (0, columns)))


def _edit(revoke, view):
    """What a revocation does, in full."""
    result = revoke(view)
    result = Edit(result) if isinstance(result, torch.Tensor) else result
    nothing, no_row = torch.zeros_like(view.masked), torch.zeros(len(view.masked), dtype=bool)
    return (
        result.masked,
        nothing if result.written is None else result.written,
        no_row if result.held is None else result.held,
    )


@every_revoke
@given(seed=SEEDS)
def test_only_commitments_are_taken_back_or_replaced(revoke, seed):
    view = random_view(seed)
    masked, written, _ = _edit(revoke, view)
    assert not (masked & ~(view.revocable | view.chosen)).any()
    assert not (written & ~(view.revocable | view.chosen)).any()


@every_revoke
@given(seed=SEEDS)
def test_rows_are_revoked_independently(revoke, seed):
    view = random_view(seed)
    whole = _edit(revoke, view)
    for b in range(3):
        for all_rows, one in zip(whole, _edit(revoke, alone(view, b)), strict=True):
            assert torch.equal(all_rows[b : b + 1], one)


@every_revoke
@given(seed=SEEDS, columns=st.integers(1, 5))
def test_columns_beyond_the_window_change_no_revocation(revoke, seed, columns):
    view = random_view(seed)
    narrow, wide = _edit(revoke, view), _edit(revoke, widened(view, columns))
    for before, after in zip(narrow, wide, strict=True):
        assert torch.equal(after, pad(before, (0, columns)) if before.ndim == 2 else before)
