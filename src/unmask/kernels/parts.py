"""Joins the softmaxes of a row's parts into one, relative to one top, in float64."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from unmask.kernels.common import NO_HISTORY, ReduceInput, Stats

LEAST_EXPONENT = -103.97  # exp() of anything lower is 0 in float32


class Parts:
    """Rows in parts; each part has the sum of its weights exp(z - its own top): [N, parts]."""

    def __init__(self, tops: Tensor, weights: Tensor) -> None:
        self.top = tops.amax(-1)  # [N]
        empty = tops == -torch.inf  # only suppressed tokens: weighed from a top of 0
        self.shift = tops.masked_fill(empty, 0.0) - self.top[:, None]  # [N, parts]
        self.scale = self.shift.exp().masked_fill(empty, 0.0)
        self.weights = self.scale * weights
        self.total = self.weights.sum(-1).masked_fill(self.top == -torch.inf, torch.nan)  # [N]

    def mean(self, sums: Tensor, shift: Tensor) -> Tensor:
        """The mean of x, from the sums of weights times (x - shift) over the parts: [N]."""
        return (self.scale * sums + shift * self.weights).sum(-1) / self.total


def joined(rows: ReduceInput, token: Tensor, columns: Tensor, compared: bool) -> Stats:
    """The statistics of N rows from those of their parts, [N, parts] each.

    The columns are the top, the second, the sum of weights, and the sum of weights times depths;
    then the past's top and sum of weights, the gaps weighted by the past and by now, and the
    largest logit that now forbids and that the past forbids.
    """
    tops, seconds, weights, depths = columns[:4]
    now = Parts(tops, weights)
    first = tops.argmax(-1, keepdim=True)  # [N, 1], the first part on ties
    others = tops.scatter(-1, first, seconds.gather(-1, first)).amax(-1)
    chosen = token.gather(-1, first)[:, 0] if rows.tokens is None else rows.tokens
    scored = rows.now.gather(-1, chosen[:, None])[:, 0].double()
    zero = torch.zeros_like(now.total)
    stats = Stats(
        chosen,
        (scored - now.top).exp() / now.total,
        -(others - now.top).expm1() / now.total,
        (now.total.log() - now.mean(depths, now.shift)).clamp_min(0.0),
        zero,
        zero,
    )
    if not compared or rows.slot is None:
        return stats
    unseen = rows.slot == NO_HISTORY
    prev_cur, cur_prev = (d.masked_fill(unseen, 0.0) for d in _divergences(now, columns[4:]))
    return replace(stats, kl_prev_cur=prev_cur, kl_cur_prev=cur_prev)


def _divergences(now: Parts, columns: Tensor) -> tuple[Tensor, Tensor]:
    """KL(past || now) and KL(now || past): [N] each."""
    tops, weights, by_past, by_now, now_forbids, past_forbids = columns
    past = Parts(tops, weights)
    shift = past.shift - now.shift
    ratio = now.total.log() - past.total.log()
    prev_cur = (past.mean(by_past, shift) + ratio).clamp_min(0.0)
    cur_prev = (-now.mean(by_now, shift) - ratio).clamp_min(0.0)
    return (
        _forbidding(prev_cur, now_forbids.amax(-1) - past.top),
        _forbidding(cur_prev, past_forbids.amax(-1) - now.top),
    )


def _forbidding(divergence: Tensor, depth: Tensor) -> Tensor:
    """+inf where a forbidden token has weight in the other distribution; NaN stays."""
    return torch.where((depth >= LEAST_EXPONENT) & ~divergence.isnan(), torch.inf, divergence)
