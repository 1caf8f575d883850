"""The bounded divergences, Jensen-Shannon and total variation, by every kernel."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import unmask.kernels.common as module
from unmask.kernels.reduce import Previous, reduce
from unmask.rules.view import BOTH_KL

BOUNDED = frozenset({"js", "tv"})
EVERY = BOUNDED | BOTH_KL
INF = math.inf

pytestmark = [
    pytest.mark.usefixtures("kernel"),
    pytest.mark.parametrize("kernel", ["torch", "native", "triton"], indirect=True),
]


def _logits(seed, rows=4, vocabulary=40, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return (3 * torch.randn(rows, vocabulary, generator=generator, dtype=torch.float64)).to(dtype)


def _pair(now, before, kl=BOUNDED):
    return reduce(now, Previous(before, torch.arange(len(now))), kl)


def _by_the_book(now, before):
    p, q = before.double().softmax(-1), now.double().softmax(-1)
    middle = (p + q) / 2
    js = (torch.xlogy(p, p / middle) + torch.xlogy(q, q / middle)).nansum(-1) / 2
    return js, (p - q).abs().sum(-1) / 2


def test_two_distributions_by_hand():
    now, before = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.8, 0.2]]).log()
    stats = _pair(now, before)
    halves = 0.5 * math.log(0.5 / 0.65) + 0.5 * math.log(0.5 / 0.35)
    others = 0.8 * math.log(0.8 / 0.65) + 0.2 * math.log(0.2 / 0.35)
    assert float(stats.js) == pytest.approx((halves + others) / 2, abs=1e-7)
    assert float(stats.tv) == pytest.approx(0.3, abs=1e-7)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@given(seed=st.integers(0, 2**16))
def test_every_dtype_agrees_with_float64_and_stays_in_its_range(dtype, seed):
    now, before = _logits(seed, dtype=dtype), _logits(seed + 1, dtype=dtype)
    stats, (js, tv) = _pair(now, before), _by_the_book(now, before)
    torch.testing.assert_close(stats.js, js, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(stats.tv, tv, rtol=1e-5, atol=1e-6)
    assert ((stats.js >= 0) & (stats.js <= math.log(2))).all()
    assert ((stats.tv >= 0) & (stats.tv <= 1)).all()


def test_distributions_without_a_common_token_are_as_far_apart_as_can_be():
    now, before = torch.tensor([[0.0, -INF, -INF]]), torch.tensor([[-INF, 0.0, -INF]])
    stats = _pair(now, before)
    assert float(stats.js) == pytest.approx(math.log(2))
    assert float(stats.tv) == 1.0


def test_an_unmoved_distribution_has_not_moved():
    now = _logits(3, dtype=torch.float32)
    now[:, 5] = -INF
    stats = _pair(now, now.clone())
    assert not stats.js.any()
    assert not stats.tv.any()


def test_a_huge_vocabulary_is_summed_without_losing_digits():
    now, before = (_logits(seed, 2, 130_000, torch.float32) for seed in (1, 2))
    stats, (js, tv) = _pair(now, before), _by_the_book(now, before)
    torch.testing.assert_close(stats.js, js, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(stats.tv, tv, rtol=1e-5, atol=1e-6)


def test_rows_without_history_have_not_moved_or_are_compared_with_the_uniform_distribution():
    now, before = _logits(1), _logits(2)
    slot = torch.tensor([0, -1, 2, -1])
    skipped = reduce(now, Previous(before, slot), BOUNDED)
    assert float(skipped.js[1]) == float(skipped.tv[3]) == 0
    started = reduce(now, Previous(before, slot), BOUNDED, uniform_start=True)
    js, tv = _by_the_book(now, torch.zeros_like(now))
    torch.testing.assert_close(started.js[1], js[1])
    torch.testing.assert_close(started.tv[3], tv[3])
    assert torch.equal(started.js[[0, 2]], skipped.js[[0, 2]])


def test_all_divergences_together_are_those_alone():
    now, before = _logits(1, dtype=torch.float32), _logits(2, dtype=torch.float32)
    together = _pair(now, before, EVERY)
    for name in ("js", "tv"):
        alone = _pair(now, before, frozenset({name}))
        assert torch.equal(getattr(alone, name), getattr(together, name))
        assert alone.kl_prev_cur is None
    both = _pair(now, before, BOTH_KL)
    torch.testing.assert_close(together.kl_cur_prev, both.kl_cur_prev, rtol=1e-5, atol=1e-6)
    assert both.js is None
    assert both.tv is None


def test_a_row_is_the_same_alone_and_among_others(monkeypatch):
    now, before = _logits(1, dtype=torch.float32), _logits(2, dtype=torch.float32)
    whole = _pair(now, before)
    monkeypatch.setattr(module, "CHUNK_ELEMENTS", 40)
    chunked = _pair(now, before)
    for name in ("js", "tv"):
        assert torch.equal(getattr(whole, name), getattr(chunked, name))


def test_a_broken_row_is_nan_and_leaves_the_others_alone():
    now, before = _logits(1), _logits(2)
    fine = _pair(now, before)
    now[1, 3] = math.nan
    stats = _pair(now, before)
    assert stats.js[1].isnan()
    assert stats.tv[1].isnan()
    assert torch.equal(stats.js[[0, 2, 3]], fine.js[[0, 2, 3]])
