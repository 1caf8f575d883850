"""A sparse history: never above the true divergence, and never further below it than it says."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import unmask
from tests.helpers import random_lookup
from unmask import RequestError, Rule, Settings, decode, decode_many
from unmask.decoding.sparse import Likeliest
from unmask.kernels.common import CHUNK_ELEMENTS
from unmask.kernels.reduce import Previous, reduce
from unmask.rules.view import BOTH_KL, FIELDS

SWD = "confidence | swd(5) | eb(0.1)"
VOCABULARY, MASK = 40, 7


def logits_of(seed, rows=30, vocabulary=VOCABULARY, dtype=torch.float64, scale=3.0):
    generator = torch.Generator().manual_seed(seed)
    scales = scale * torch.rand(rows, 1, generator=generator, dtype=torch.float64) + 0.1
    logits = scales * torch.randn(rows, vocabulary, generator=generator, dtype=torch.float64)
    logits[:, MASK] = -torch.inf
    return logits.to(dtype)


def sparsely(now, before, keep, kl=BOTH_KL, slot=None, uniform_start=False):
    slot = torch.arange(len(now)) if slot is None else slot
    kept = Likeliest.of(before, keep, (MASK,))
    return reduce(now, kept.previous(slot), kl, uniform_start)


def exactly(now, before, kl=BOTH_KL, slot=None, uniform_start=False):
    slot = torch.arange(len(now)) if slot is None else slot
    return reduce(now, Previous(before, slot), kl, uniform_start)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    keep=st.integers(1, VOCABULARY + 5),
    step=st.floats(0, 4),
    scale=st.floats(0.1, 30),
)
def test_the_true_divergence_lies_between_the_sparse_one_and_its_bound(seed, keep, step, scale):
    before = logits_of(seed, scale=scale)
    now = before + step * logits_of(seed + 1).nan_to_num(neginf=0.0)
    for kind, column in FIELDS.items():
        asked = frozenset({kind})
        sparse, true = sparsely(now, before, keep, asked), exactly(now, before, asked)
        low, exact = (getattr(stats, column) for stats in (sparse, true))
        rounding = 1e-9 * (1 + exact)
        assert bool((low <= exact + rounding).all())
        assert bool((exact <= low + sparse.kl_error + rounding).all())


def test_the_bound_is_reached_where_the_rest_stands_on_its_least_token():
    before = torch.tensor([[4.0, 0.0, -torch.inf, -torch.inf]], dtype=torch.float64)
    now = torch.tensor([[4.0, -3.0, 1.0, 1.0]], dtype=torch.float64)
    kl = frozenset({"prev_cur"})
    kept = Likeliest.of(before, 1, ())
    sparse = reduce(now, kept.previous(torch.zeros(1).long()), kl)
    true = exactly(now, before, kl).kl_prev_cur
    assert float(true - sparse.kl_prev_cur) > 0.05
    torch.testing.assert_close(sparse.kl_prev_cur + sparse.kl_error, true)


@pytest.mark.parametrize("keep", [VOCABULARY - 1, VOCABULARY, VOCABULARY + 100])
def test_with_all_tokens_kept_nothing_is_lost(keep):
    now, before = logits_of(0), logits_of(1)
    sparse, true = sparsely(now, before, keep), exactly(now, before)
    torch.testing.assert_close(sparse.kl_prev_cur, true.kl_prev_cur)
    torch.testing.assert_close(sparse.kl_cur_prev, true.kl_cur_prev)
    assert not bool(sparse.kl_error.any())


def test_more_tokens_bring_it_nearer():
    now, before = logits_of(0, 200), logits_of(1, 200)
    true = exactly(now, before).kl_prev_cur
    missing = [float((true - sparsely(now, before, k).kl_prev_cur).mean()) for k in (1, 4, 16, 39)]
    assert missing == sorted(missing, reverse=True)
    assert missing[-1] < 1e-9 < missing[0]


def test_all_other_statistics_are_those_of_a_full_history():
    now, before = logits_of(0), logits_of(1)
    sparse, true = sparsely(now, before, 4), exactly(now, before)
    for name in ("token", "confidence", "margin", "entropy"):
        assert torch.equal(getattr(sparse, name), getattr(true, name))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_is_computed_in_float32_of_half_precision_too(dtype):
    now, before = (logits_of(seed, dtype=dtype) for seed in (0, 1))
    sparse, true = sparsely(now, before, 8), exactly(now.double(), before.double())
    assert bool((sparse.kl_prev_cur <= true.kl_prev_cur + 1e-4).all())
    assert bool((true.kl_prev_cur <= sparse.kl_prev_cur + sparse.kl_error + 1e-4).all())


def test_rows_without_history_have_none_to_differ_from():
    now, before = logits_of(0, 4), logits_of(1, 2)
    slot = torch.tensor([1, -1, 0, -1])
    sparse = sparsely(now, before, 8, slot=slot)
    assert sparse.kl_prev_cur[[1, 3]].tolist() == sparse.kl_error[[1, 3]].tolist() == [0, 0]
    assert bool((sparse.kl_prev_cur[[0, 2]] > 0).all())


def test_rows_without_history_can_be_compared_with_the_uniform_distribution():
    now, before, slot = logits_of(0, 4), logits_of(1, 2), torch.tensor([1, -1, 0, -1])
    sparse = sparsely(now, before, VOCABULARY, slot=slot, uniform_start=True)
    true = exactly(now, before, slot=slot, uniform_start=True)
    torch.testing.assert_close(sparse.kl_prev_cur, true.kl_prev_cur)


def test_a_token_that_the_model_itself_forbids_makes_the_bound_infinite():
    now, before = logits_of(0, 2), logits_of(1, 2)
    least = before[0].argsort()[1]  # the first is the mask
    now[0, least] = -torch.inf
    sparse = sparsely(now, before, 4, frozenset({"prev_cur"}))
    assert sparse.kl_error.isinf().tolist() == [True, False]
    assert bool(sparse.kl_prev_cur.isfinite().all())


def test_a_row_is_the_same_alone_and_among_many_chunks():
    vocabulary = CHUNK_ELEMENTS // 2  # two rows to a chunk
    now, before = (logits_of(seed, 5, vocabulary, torch.float32) for seed in (0, 1))
    together = sparsely(now, before, 16)
    for row in range(5):
        alone = sparsely(now[row : row + 1], before[row : row + 1], 16)
        assert torch.equal(alone.kl_prev_cur, together.kl_prev_cur[row : row + 1])
        assert torch.equal(alone.kl_error, together.kl_error[row : row + 1])


# Decoding

MODEL = random_lookup(3)


@pytest.mark.parametrize("block", [None, 4])
@pytest.mark.parametrize(
    "rule", [SWD, "klass", "credit | confidence | swd(2,kl=cur_prev) | top(1)"]
)
def test_a_decode_that_keeps_every_token_is_the_decode_with_all_logits(rule, block):
    full = decode(MODEL, [1, 2], rule, length=8, block=block)
    kept = decode(MODEL, [1, 2], rule, length=8, block=block, history=MODEL.spec.vocab_size)
    assert kept.canvas.tolist() == full.canvas.tolist()
    assert kept.commit_step.tolist() == full.commit_step.tolist()
    assert kept.kl_error == full.kl_error == 0.0


def test_a_decode_tells_how_far_off_its_divergences_may_have_been():
    result = decode(MODEL, [1, 2], SWD, length=8, history=2)
    assert 0 < result.kl_error < 100


def test_rows_of_a_batch_are_decoded_as_if_alone():
    prompts = [[1], [1, 2, 3], [2, 1]]
    together = decode_many(MODEL, prompts, SWD, length=6, block=3, history=3, batch_size=3)
    for prompt, result in zip(prompts, together, strict=True):
        alone = decode(MODEL, prompt, SWD, length=6, block=3, history=3)
        assert result.canvas.tolist() == alone.canvas.tolist()
        assert result.kl_error == alone.kl_error


def test_the_logits_of_the_last_forward_are_let_go():
    request = unmask.prompt_request(MODEL.spec, [1], 6, Settings(Rule.parse(SWD), history=2))
    batch = unmask.Batch(MODEL)
    batch.admit(request)
    batch.step()
    (rows,) = batch.groups.values()
    assert isinstance(rows.history.last, Likeliest)
    assert rows.history.last.tokens.shape == (6, 2)


@pytest.mark.parametrize(
    ("rule", "history", "line"),
    [
        (SWD, 0, "history must be a whole number >= 1, got 0"),
        (SWD, 1.5, "history must be a whole number >= 1, got 1.5"),
        (f"{SWD} | revoke(1)", 8, "revoke compares with all logits at commit"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(rule, history, line):
    with pytest.raises(RequestError, match=line.replace("(", r"\(")):
        decode(MODEL, [1], rule, length=4, history=history)
