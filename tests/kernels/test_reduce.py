"""The one pass over the logits, against hand numbers and a float64 reference."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

import unmask.kernels.common as module
from unmask.kernels.reduce import Previous, divergence, reduce
from unmask.rules.view import BOTH_KL

INF = math.inf
HUGE = 151_936  # Dream's vocabulary
STATS = ("confidence", "margin", "entropy", "kl_prev_cur", "kl_cur_prev")
FAST_TO_START = ("torch", "native", "triton")  # pytest --kernel compile runs the fourth


def pytest_generate_tests(metafunc):
    chosen = metafunc.config.getoption("--kernel")
    kernels = FAST_TO_START if chosen == "auto" else (chosen,)
    metafunc.parametrize("kernel", kernels, indirect=True)


pytestmark = pytest.mark.usefixtures("kernel")


def log(*rows):
    """Logits of given probabilities."""
    return torch.tensor(rows, dtype=torch.float64).log()


def before(logits):
    """All of these as the logits one forward ago, row by row."""
    return Previous(logits, torch.arange(len(logits)))


def reference(now, past=None):
    """The same statistics the slow way, from float64 softmaxes."""
    lp = now.double().log_softmax(-1)
    p = lp.exp()
    best = p.sort(descending=True).values
    columns = {
        "confidence": best[:, 0],
        "margin": best[:, 0] - best[:, 1],
        "entropy": -torch.where(p > 0, p * lp, 0.0).sum(-1),
    }
    if past is not None:
        lq = past.double().log_softmax(-1)
        q = lq.exp()
        columns["kl_prev_cur"] = torch.where(q > 0, q * (lq - lp), 0.0).sum(-1)
        columns["kl_cur_prev"] = torch.where(p > 0, p * (lp - lq), 0.0).sum(-1)
    return columns


def random_logits(seed, rows=6, size=40, scale=4.0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(rows, size, generator=generator, dtype=torch.float64)


def test_a_distribution_by_hand():
    stats = reduce(log([0.5, 0.25, 0.125, 0.125]))
    assert stats.token.tolist() == [0]
    assert float(stats.confidence) == pytest.approx(0.5)
    assert float(stats.margin) == pytest.approx(0.25)
    assert float(stats.entropy) == pytest.approx(1.75 * math.log(2))


def test_both_divergences_by_hand():
    now, past = log([0.5, 0.5]), log([0.75, 0.25])
    stats = reduce(now, before(past), BOTH_KL)
    forward = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    backward = 0.5 * math.log(2 / 3) + 0.5 * math.log(2)
    assert float(stats.kl_prev_cur) == pytest.approx(forward)
    assert float(stats.kl_cur_prev) == pytest.approx(backward)


@pytest.mark.parametrize("kl", ["prev_cur", "cur_prev"])
def test_one_direction_alone_is_the_same_as_both(kl):
    now, past = random_logits(0), random_logits(1)
    both = reduce(now, before(past), BOTH_KL)
    one = reduce(now, before(past), frozenset({kl}))
    assert torch.equal(getattr(one, f"kl_{kl}"), getattr(both, f"kl_{kl}"))


def test_a_divergence_that_nobody_asked_for_is_absent():
    stats = reduce(random_logits(0), before(random_logits(1)), frozenset({"prev_cur"}))
    assert stats.kl_cur_prev is None


def test_statistics_are_float64_whatever_the_logits():
    stats = reduce(random_logits(0).bfloat16(), before(random_logits(1).bfloat16()), BOTH_KL)
    assert all(getattr(stats, name).dtype == torch.float64 for name in STATS)
    assert stats.token.dtype == torch.int64


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [
        (torch.float64, 1e-12),
        (torch.float32, 2e-6),
        (torch.bfloat16, 2e-6),
        (torch.float16, 2e-6),
    ],
    ids=str,
)
@settings(max_examples=5)
@given(seed=st.integers(0, 2**16))
def test_every_dtype_agrees_with_a_float64_reference(dtype, tolerance, seed):
    now, past = random_logits(seed).to(dtype), random_logits(seed + 1).to(dtype)
    stats = reduce(now, before(past), BOTH_KL)
    for name, wanted in reference(now, past).items():
        torch.testing.assert_close(
            getattr(stats, name), wanted, rtol=tolerance, atol=10 * tolerance
        )


@settings(max_examples=8)
@given(seed=st.integers(0, 2**16), suppressed=st.integers(0, 38))
def test_suppressed_tokens_weigh_nothing(seed, suppressed):
    now, past = random_logits(seed), random_logits(seed + 1)
    full = reduce(now[:, suppressed:], before(past[:, suppressed:]), BOTH_KL)
    now[:, :suppressed] = past[:, :suppressed] = -INF
    stats = reduce(now, before(past), BOTH_KL)
    for name in STATS:
        torch.testing.assert_close(getattr(stats, name), getattr(full, name))
    assert torch.equal(stats.token, full.token + suppressed)


def test_a_one_hot_row_is_certain():
    now = torch.full((1, 5), -INF)
    now[0, 3] = 2.0
    stats = reduce(now, before(now), BOTH_KL, uniform_start=True)
    assert stats.token.tolist() == [3]
    for name, wanted in zip(STATS, (1.0, 1.0, 0.0, 0.0, 0.0), strict=True):
        assert float(getattr(stats, name)) == wanted


def test_a_token_that_became_impossible_makes_the_divergence_infinite():
    now, past = log([1.0, 0.0]), log([0.5, 0.5])
    stats = reduce(now, before(past), BOTH_KL)
    assert float(stats.kl_prev_cur) == INF
    assert float(stats.kl_cur_prev) == pytest.approx(math.log(2))


def test_a_token_that_became_possible_makes_the_reverse_divergence_infinite():
    now, past = log([0.5, 0.5]), log([1.0, 0.0])
    stats = reduce(now, before(past), BOTH_KL)
    assert float(stats.kl_prev_cur) == pytest.approx(math.log(2))
    assert float(stats.kl_cur_prev) == INF


@pytest.mark.parametrize(
    ("dtype", "gap"),
    [(torch.float32, 32768.0), (torch.float64, 1000.0), (torch.bfloat16, 200.0)],
    ids=str,
)
def test_a_huge_vocabulary_with_huge_gaps_underflows_to_numbers(dtype, gap):
    now, past = torch.zeros(1, HUGE, dtype=dtype), torch.zeros(1, HUGE, dtype=dtype)
    now[0, 7], past[0, 9] = gap, gap
    stats = reduce(now, before(past), BOTH_KL)
    for name in STATS:
        assert not getattr(stats, name).isnan().any()
    assert stats.token.tolist() == [7]
    assert float(stats.confidence) == 1.0
    assert float(stats.entropy) == pytest.approx(0.0, abs=1e-12)
    assert float(stats.kl_prev_cur) == pytest.approx(gap, rel=1e-6)
    assert float(stats.kl_cur_prev) == pytest.approx(gap, rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_flat_huge_vocabulary_has_its_entropy(dtype):
    stats = reduce(torch.zeros(2, HUGE, dtype=dtype))
    assert stats.entropy.tolist() == pytest.approx([math.log(HUGE)] * 2, rel=1e-6)
    assert stats.confidence.tolist() == pytest.approx([1 / HUGE] * 2, rel=1e-6)
    assert stats.margin.tolist() == [0.0, 0.0]


def test_an_unmoved_distribution_has_no_divergence_at_all():
    now = random_logits(0).float()
    stats = reduce(now, before(now), BOTH_KL)
    assert stats.kl_prev_cur.tolist() == [0.0] * 6
    assert stats.kl_cur_prev.tolist() == [0.0] * 6


@settings(max_examples=5)
@given(seed=st.integers(0, 2**16))
def test_a_divergence_is_never_negative(seed):
    now = random_logits(seed).float()
    moved = now + 1e-7 * random_logits(seed + 1).float()
    stats = reduce(now, before(moved), BOTH_KL)
    assert (stats.kl_prev_cur >= 0).all()
    assert (stats.kl_cur_prev >= 0).all()


def test_a_row_without_history_has_no_divergence():
    now, past = random_logits(0), random_logits(1)
    stats = reduce(now, Previous(past, torch.tensor([0, -1, 2, -1, 4, 5])), BOTH_KL)
    assert stats.kl_prev_cur[[1, 3]].tolist() == [0.0, 0.0]
    assert (stats.kl_prev_cur[[0, 2, 4, 5]] > 0).all()


def test_without_any_history_no_row_has_a_divergence():
    stats = reduce(random_logits(0), None, BOTH_KL)
    assert stats.kl_prev_cur.tolist() == stats.kl_cur_prev.tolist() == [0.0] * 6


def test_history_is_found_by_slot():
    now, past = random_logits(0), random_logits(1)
    turned = Previous(past.flip(0), torch.arange(5, -1, -1))
    assert torch.equal(
        reduce(now, turned, BOTH_KL).kl_prev_cur, reduce(now, before(past), BOTH_KL).kl_prev_cur
    )


def test_a_uniform_start_compares_with_the_uniform_distribution():
    now = log([0.5, 0.25, 0.25])
    stats = reduce(now, None, BOTH_KL, uniform_start=True)
    third = 1 / 3
    wanted = third * math.log(third / 0.5) + 2 * third * math.log(third / 0.25)
    assert float(stats.kl_prev_cur) == pytest.approx(wanted)
    assert float(stats.kl_cur_prev) == pytest.approx(math.log(3) - float(stats.entropy))


def test_a_uniform_start_spreads_over_the_unsuppressed_tokens_only():
    now = log([0.5, 0.5, 0.0, 0.0])
    stats = reduce(now, None, BOTH_KL, uniform_start=True)
    assert float(stats.kl_prev_cur) == pytest.approx(0.0, abs=1e-15)
    assert float(stats.kl_cur_prev) == pytest.approx(0.0, abs=1e-15)


def test_a_uniform_start_is_for_rows_without_history_only():
    now, past = random_logits(0), random_logits(1)
    slot = torch.tensor([0, -1, 2, -1, 4, 5])
    mixed = reduce(now, Previous(past, slot), BOTH_KL, uniform_start=True)
    seen = reduce(now, before(past), BOTH_KL).kl_prev_cur
    start = reduce(now, None, BOTH_KL, uniform_start=True).kl_prev_cur
    torch.testing.assert_close(mixed.kl_prev_cur, torch.where(slot >= 0, seen, start))


def test_ties_go_to_the_lowest_token():
    now = torch.tensor([[0.0, 3.0, 1.0, 3.0], [2.0, 2.0, 2.0, 2.0]])
    stats = reduce(now)
    assert stats.token.tolist() == [1, 0]
    assert stats.margin.tolist() == [0.0, 0.0]


def test_ties_go_to_the_lowest_token_in_a_huge_vocabulary():
    now = torch.zeros(1, HUGE)
    now[0, [90_000, 150_000, 140_001]] = 1.0
    assert reduce(now).token.tolist() == [90_000]


@pytest.mark.parametrize(
    "broken", [[0.0, math.nan, 1.0], [0.0, INF, 1.0], [-INF, -INF, -INF], [INF, INF, 0.0]], ids=str
)
def test_a_broken_row_has_a_nan_confidence_and_leaves_the_others_alone(broken):
    stats = reduce(torch.tensor([broken, [0.0, 1.0, 2.0]]))
    assert stats.confidence.isnan().tolist() == [True, False]


def test_given_tokens_are_scored_instead_of_the_likeliest():
    stats = reduce(log([0.5, 0.25, 0.25]), tokens=torch.tensor([2]))
    assert stats.token.tolist() == [2]
    assert float(stats.confidence) == pytest.approx(0.25)
    assert float(stats.margin) == pytest.approx(0.25)


def test_a_transform_changes_what_is_scored(monkeypatch):
    monkeypatch.setattr(module, "CHUNK_ELEMENTS", 1)
    now, firsts = random_logits(0), []

    def halve(z, first):
        firsts.append(first)
        return z / 2

    torch.testing.assert_close(reduce(now, transform=halve).entropy, reduce(now / 2).entropy)
    assert firsts == [0, 1, 2, 3, 4, 5]


def test_no_rows_give_no_statistics():
    stats = reduce(torch.zeros(0, 5), None, BOTH_KL)
    assert all(len(getattr(stats, name)) == 0 for name in STATS)


def test_the_logits_are_only_read():
    now, past = random_logits(0), random_logits(1)
    copies = now.clone(), past.clone()
    reduce(now, before(past), BOTH_KL, uniform_start=True)
    assert torch.equal(now, copies[0])
    assert torch.equal(past, copies[1])


@pytest.mark.parametrize("chunk", [1, 80, 120, 10_000])
def test_chunks_do_not_change_a_bit(monkeypatch, chunk):
    now, past = random_logits(0).float(), random_logits(1).float()
    whole = reduce(now, before(past), BOTH_KL, uniform_start=True)
    monkeypatch.setattr(module, "CHUNK_ELEMENTS", chunk)
    cut = reduce(now, before(past), BOTH_KL, uniform_start=True)
    for name in ("token", *STATS):
        assert torch.equal(getattr(cut, name), getattr(whole, name))


@pytest.fixture
def two_threads():
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


@pytest.mark.usefixtures("two_threads")
def test_a_row_has_the_same_bits_alone_and_among_others_on_several_threads():
    now, past = (random_logits(seed, 3, 40_000).float() for seed in (0, 1))
    whole = reduce(now, before(past), BOTH_KL)
    for row in range(3):
        alone = reduce(now[row : row + 1], Previous(past, torch.tensor([row])), BOTH_KL)
        for name in STATS:
            assert torch.equal(getattr(alone, name), getattr(whole, name)[row : row + 1])


@pytest.mark.parametrize("chunk", [1, 80])
def test_chunks_do_not_change_the_divergence_of_pairs(monkeypatch, chunk):
    first, second = random_logits(0), random_logits(1)
    whole = divergence(first, second)
    monkeypatch.setattr(module, "CHUNK_ELEMENTS", chunk)
    assert torch.equal(divergence(first, second), whole)
    torch.testing.assert_close(whole, reference(second, first)["kl_prev_cur"])


class LargestTensor(TorchDispatchMode):
    """Remembers the most elements that any operation gave out as floats of 4 bytes or more."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for made in out if isinstance(out, (tuple, list)) else (out,):
            wide = isinstance(made, torch.Tensor) and made.is_floating_point()
            if wide and made.element_size() >= 4:
                self.elements = max(self.elements, made.numel())
        return out


def test_no_wide_copy_is_larger_than_a_chunk(monkeypatch, kernel):
    if kernel == "compile":
        pytest.skip("torch.compile does not run under a dispatch mode")
    monkeypatch.setattr(module, "CHUNK_ELEMENTS", 400)
    now, past = torch.randn(20, 100).bfloat16(), torch.randn(20, 100).bfloat16()
    with LargestTensor() as largest:
        reduce(now, before(past), BOTH_KL, uniform_start=True)
        reduce(now, transform=lambda z, first: z / 2)
        divergence(now, past)
    assert 0 < largest.elements <= 400
