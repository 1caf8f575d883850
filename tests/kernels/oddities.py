"""Rows with every oddity, and their statistics the slow way, in float64."""

from __future__ import annotations

import math

import torch

from unmask.kernels.common import NO_HISTORY, UNIFORM, ReduceInput
from unmask.rules.view import BOTH_KL

INF = math.inf
STATS = ("confidence", "margin", "entropy", "kl_prev_cur", "kl_cur_prev")
SIZES = (1, 2, 7, 64, 1023, 2049, 4097)  # around whatever a kernel reads at once


def random_logits(seed, rows, size, dtype=torch.float32, scale=4.0):
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(rows, size, generator=generator)).to(dtype)


def plain(seed, rows, size, dtype):
    return random_logits(seed, rows, size, dtype)


def suppressed_here_and_there(seed, rows, size, dtype):
    logits = random_logits(seed, rows, size, dtype)
    logits[:, 1::3] = -INF
    return logits


def suppressed_but_the_last(seed, rows, size, dtype):
    logits = torch.full((rows, size), -INF, dtype=dtype)
    logits[:, -1] = random_logits(seed, rows, 1, dtype)[:, 0]
    return logits


def rising(seed, rows, size, dtype):
    """Every block has a new maximum."""
    return torch.linspace(-60.0, 60.0, size).expand(rows, size).to(dtype) + seed % 2


def far_below(seed, rows, size, dtype):
    """Tokens whose probability is too small for a float32."""
    logits = random_logits(seed, rows, size, dtype)
    logits[:, ::2] -= 200.0
    return logits


def tied(seed, rows, size, dtype):
    return random_logits(seed, rows, size, dtype, scale=1.0).round()


PATTERNS = (plain, suppressed_here_and_there, suppressed_but_the_last, rising, far_below, tied)


def example(pattern, size, dtype, rows=5):
    """Rows with a history in another order, one without, and one that starts from uniform."""
    now, past = pattern(0, rows, size, dtype), pattern(1, rows, size, dtype)
    slot = torch.tensor([2, 0, NO_HISTORY, UNIFORM, 4])
    return ReduceInput(now, past, slot, kl=BOTH_KL, uniform=True)


def expected(rows):
    """Statistics by the book, from float64 log-softmaxes."""
    now, past = rows.now.double(), rows.past.double()
    lp = now.log_softmax(-1)
    start = torch.where(now == -INF, now, 0.0)
    then = torch.where((rows.slot == UNIFORM)[:, None], start, past[rows.slot.clamp_min(0)])
    lq = then.log_softmax(-1)
    ordered = lp.exp().sort(descending=True, stable=True)
    best = torch.nn.functional.pad(ordered.values, (0, 1))
    unseen = rows.slot == NO_HISTORY
    return {
        "token": now.argmax(-1),
        "confidence": best[:, 0],
        "margin": best[:, 0] - best[:, 1],
        "entropy": -_sum(lp.exp(), lp),
        "kl_prev_cur": _sum(lq.exp(), lq - lp).masked_fill(unseen, 0.0),
        "kl_cur_prev": _sum(lp.exp(), lp - lq).masked_fill(unseen, 0.0),
    }


def _sum(weights, values):
    """0 log 0 = 0; what float32 cannot hold is 0."""
    return torch.where(weights > 1e-44, weights * values, 0.0).sum(-1)


def assert_right(stats, rows, tolerance=2e-6):
    about = f"of {rows.now.dtype} {tuple(rows.now.shape)}"
    for name, wanted in expected(rows).items():
        torch.testing.assert_close(
            getattr(stats, name),
            wanted,
            rtol=tolerance,
            atol=10 * tolerance,
            msg=lambda told, name=name: f"{name} {about}: {told}",
        )
