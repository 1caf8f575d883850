"""Every kernel against float64 statistics by the book."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.oddities import (
    INF,
    PATTERNS,
    SIZES,
    STATS,
    assert_right,
    example,
    plain,
    random_logits,
)
from unmask.kernels import reduce_rows
from unmask.kernels.check import DTYPES
from unmask.kernels.common import ReduceInput
from unmask.rules.view import BOTH_KL

pytestmark = [
    pytest.mark.usefixtures("kernel"),
    pytest.mark.parametrize("kernel", ["torch", "native", "triton"], indirect=True),
]

# Triton's interpreter takes 20 ms for a part of a row; test_cuda.py has rows of many small parts.
INTERPRETED = {torch.float32: (1, 7, 4097), torch.bfloat16: (64,), torch.float16: (2049,)}


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.__name__)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_statistics_are_those_of_float64(pattern, dtype, kernel):
    for size in SIZES if kernel != "triton" else INTERPRETED[dtype]:
        rows = example(pattern, size, dtype)
        assert_right(reduce_rows(rows), rows)


@settings(max_examples=8)
@given(seed=st.integers(0, 2**16), shift=st.floats(-500, 500, width=16))
def test_a_shift_of_all_logits_changes_nothing(seed, shift):
    now, past = random_logits(seed, 3, 50), random_logits(seed + 1, 3, 50)
    slot = torch.arange(3)
    moved = reduce_rows(ReduceInput(now + shift, past - shift, slot, kl=BOTH_KL))
    still = reduce_rows(ReduceInput(now, past, slot, kl=BOTH_KL))
    for name in STATS:
        torch.testing.assert_close(getattr(moved, name), getattr(still, name), rtol=0, atol=2e-4)


@settings(max_examples=8)
@given(seed=st.integers(0, 2**16))
def test_the_statistics_stay_in_their_ranges(seed):
    rows = ReduceInput(random_logits(seed, 4, 33), random_logits(seed + 1, 4, 33), torch.arange(4))
    stats = reduce_rows(ReduceInput(rows.now, rows.past, rows.slot, kl=BOTH_KL))
    assert ((stats.confidence > 0) & (stats.confidence <= 1)).all()
    assert ((stats.margin >= 0) & (stats.margin <= stats.confidence)).all()
    assert (stats.entropy >= 0).all()
    assert (stats.kl_prev_cur >= 0).all()
    assert (stats.kl_cur_prev >= 0).all()


@pytest.mark.parametrize(
    ("size", "dtype"),
    [*((7, dtype) for dtype in DTYPES), (4097, torch.bfloat16), (9000, torch.float32)],
    ids=str,
)
def test_a_row_has_the_same_bits_alone_and_among_others(size, dtype):
    rows = example(plain, size, dtype)
    whole = reduce_rows(rows)
    for row in range(len(rows.now)):
        mine = slice(row, row + 1)
        alone = reduce_rows(
            ReduceInput(rows.now[mine], rows.past, rows.slot[mine], kl=BOTH_KL, uniform=True)
        )
        for name in ("token", *STATS):
            assert torch.equal(getattr(alone, name), getattr(whole, name)[mine])


@pytest.mark.parametrize("place", [0, 1500, 4096])
@pytest.mark.parametrize("broken", [float("nan"), INF])
def test_one_broken_logit_spoils_its_row_only(broken, place):
    now = random_logits(0, 3, 4097)
    now[1, place] = broken
    stats = reduce_rows(ReduceInput(now, now, torch.arange(3), kl=BOTH_KL))
    for name in STATS:
        assert getattr(stats, name).isnan().tolist() == [False, True, False]


def test_a_broken_past_spoils_the_divergence_only():
    now, past = random_logits(0, 3, 100), random_logits(1, 3, 100)
    past[0, 5], past[1] = float("nan"), -INF
    stats = reduce_rows(ReduceInput(now, past, torch.arange(3), kl=BOTH_KL))
    assert stats.kl_prev_cur.isnan().tolist() == [True, True, False]
    assert stats.kl_cur_prev.isnan().tolist() == [True, True, False]
    assert not stats.confidence.isnan().any()


@pytest.mark.parametrize("size", [40, 5000])
def test_a_forbidden_token_that_weighs_nothing_is_no_infinite_divergence(size):
    now, past = torch.zeros(1, size), torch.zeros(1, size)
    now[0, 1] = -INF
    past[0, 1], past[0, -1] = 10.0, 300.0  # allowed at first sight; then 300 turns up
    stats = reduce_rows(ReduceInput(now, past, torch.arange(1), kl=BOTH_KL))
    assert stats.kl_prev_cur.isfinite().all()


@pytest.mark.parametrize("size", [40, 5000])
def test_a_part_that_only_one_side_suppresses_is_an_infinite_divergence(size):
    now, past = torch.zeros(1, size), torch.zeros(1, size)
    now[0, : size // 2] = -INF
    stats = reduce_rows(ReduceInput(now, past, torch.arange(1), kl=BOTH_KL))
    assert stats.kl_prev_cur.tolist() == [INF]
    assert stats.kl_cur_prev.tolist() == pytest.approx([torch.tensor(2.0).log().item()], rel=1e-5)


def test_rows_may_lie_apart_and_tokens_too():
    wide = random_logits(0, 6, 90)
    kept = wide[::2, 20:70]
    turned = wide.T.contiguous().T[::2, 20:70]
    slot = torch.tensor([2, 1, 0])
    stats = reduce_rows(ReduceInput(kept, turned, slot, kl=BOTH_KL))
    wanted = reduce_rows(ReduceInput(kept.contiguous(), kept.contiguous(), slot, kl=BOTH_KL))
    for name in ("token", *STATS):
        assert torch.equal(getattr(stats, name), getattr(wanted, name))


def test_the_lowest_of_tied_tokens_wins_wherever_they_are():
    now = torch.zeros(4, 9000)
    for row, places in enumerate([(0, 8999), (4095, 4096), (2047, 2048, 17), (8998, 8999)]):
        now[row, list(places)] = 1.0
    stats = reduce_rows(ReduceInput(now))
    assert stats.token.tolist() == [0, 4095, 17, 8998]
    assert stats.margin.tolist() == [0.0] * 4


def test_logits_of_a_lowest_float_are_as_good_as_suppressed():
    now = random_logits(0, 2, 50)
    now[:, 10:20] = torch.finfo(torch.float32).min
    cut = torch.cat([now[:, :10], now[:, 20:]], -1)
    stats, wanted = reduce_rows(ReduceInput(now)), reduce_rows(ReduceInput(cut))
    torch.testing.assert_close(stats.entropy, wanted.entropy, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(stats.confidence, wanted.confidence, rtol=1e-6, atol=1e-6)
