"""The statistics through torch.compile: fused loops on any device, after a slow first call."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from unmask.kernels.build import compiler
from unmask.kernels.common import NO_HISTORY, UNIFORM, Rows, Stats, Unavailable, working_dtype

Columns = tuple[Tensor, ...]  # [N] each


def prepare() -> None:
    """A compiler must be there; nothing is compiled yet, since that takes many seconds."""
    if compiler() is None and not torch.cuda.is_available():
        raise Unavailable("torch.compile needs a C++ compiler")


def serves(rows: Rows) -> bool:
    """Any floating dtype on any device, if there is a row at all."""
    return rows.now.is_floating_point() and len(rows.now) > 0


def reduce_rows(rows: Rows) -> Stats:
    """Statistics of N rows; the first call of each kind compiles, and so does one row alone."""
    if rows.slot is None or not rows.kl:
        token, top, second, total, depth = _compiled(_alone)(rows.now)
        divergences = [torch.zeros_like(total)] * 2
    else:
        past = rows.now if rows.past is None or not len(rows.past) else rows.past
        found = _compiled(_compared)(rows.now, past, rows.slot)
        token, top, second, total, depth = found[:5]
        divergences = _divergences(total, *found[5:], rows.slot == NO_HISTORY)
    token = token if rows.tokens is None else rows.tokens
    scored = rows.now.gather(-1, token[:, None])[:, 0].double()
    return Stats(
        token,
        (scored - top).exp() / total,
        -(second - top).expm1() / total,
        (total.log() - depth / total).clamp_min(0.0),
        *divergences,
    )


def _alone(now: Tensor) -> Columns:
    """Token, largest and second logit, sum of the weights, and of weights times depths."""
    z = now.to(working_dtype(now))
    return _softmax(z)[2]


def _compared(now: Tensor, past: Tensor, slot: Tensor) -> Columns:
    """The same, and of the past the sum of the weights; weighted gaps, by past and by now."""
    z = now.to(working_dtype(now))
    depth, weight, columns = _softmax(z)
    uniform = torch.where(z == -torch.inf, z, 0.0)
    found = past[slot.clamp_min(0)].to(z.dtype)
    y = torch.where((slot == UNIFORM)[:, None], uniform, found)
    past_depth = y - y.amax(-1, keepdim=True)
    past_weight = past_depth.exp()
    gap = past_depth - depth  # infinite where one token of the two is suppressed
    by_past = torch.where(past_weight > 0, past_weight * gap, 0.0).sum(-1)
    by_now = torch.where(weight > 0, weight * gap, 0.0).sum(-1)
    return (*columns, *(column.double() for column in (past_weight.sum(-1), by_past, by_now)))


def _softmax(z: Tensor) -> tuple[Tensor, Tensor, Columns]:
    """Depths, weights, and what is left of them."""
    token = z.argmax(-1)
    top = z.amax(-1)
    depth = z - top[:, None]
    weight = depth.exp()
    others = torch.arange(z.shape[-1], device=z.device) != token[:, None]
    second = torch.where(others, z, -torch.inf).amax(-1)
    deep = torch.where(weight > 0, weight * depth, 0.0).sum(-1)
    columns = [column.double() for column in (top, second, weight.sum(-1), deep)]
    return depth, weight, (token, *columns)


def _divergences(
    total: Tensor, past_total: Tensor, by_past: Tensor, by_now: Tensor, unseen: Tensor
) -> list[Tensor]:
    """KL(past || now) and KL(now || past): [N] each."""
    ratio = total.log() - past_total.log()
    found = by_past / past_total + ratio, -by_now / total - ratio
    return [d.clamp_min(0.0).masked_fill(unseen, 0.0) for d in found]


@lru_cache(maxsize=None)
def _compiled(function: Callable[..., Columns]) -> Callable[..., Columns]:
    return torch.compile(function, fullgraph=True, dynamic=True)
