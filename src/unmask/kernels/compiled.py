"""The statistics through torch.compile: fused loops on any device, after a slow first call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import FunctionType

import torch
from torch import Tensor

from unmask.kernels.build import compiler
from unmask.kernels.common import (
    NO_HISTORY,
    UNIFORM,
    ReduceInput,
    Stats,
    Unavailable,
    working_dtype,
)
from unmask.rules.view import BOTH_KL

Columns = tuple[Tensor, ...]  # [N] each


def prepare() -> None:
    """Check that there is a compiler; the first call compiles, which takes many seconds."""
    if compiler() is None and not torch.cuda.is_available():
        raise Unavailable("torch.compile needs a C++ compiler")


def serves(rows: ReduceInput) -> bool:
    """Any floating dtype on any device, with at least one row; of the divergences only KL."""
    return rows.now.is_floating_point() and len(rows.now) > 0 and rows.kl <= BOTH_KL


def reduce_rows(rows: ReduceInput) -> Stats:
    """Statistics of N rows; the first call of each kind compiles."""
    if len(rows.now) == 1:  # alone, torch sums in another order: other bits
        return _first(reduce_rows(_twice(rows)))
    if rows.slot is None or not rows.kl:
        token, top, second, total, depth = _compiled(_alone, rows.now)
        divergences = [torch.zeros_like(total)] * 2
    else:
        past = rows.now if rows.past is None or not len(rows.past) else rows.past
        columns = _compiled(_compared, rows.now, past, rows.slot)
        token, top, second, total, depth = columns[:5]
        divergences = _divergences(total, columns[5:], rows.slot == NO_HISTORY)
    token = token if rows.tokens is None else rows.tokens
    scored = rows.now.gather(-1, token[:, None])[:, 0].double()
    return Stats(
        token,
        (scored - top).exp() / total,
        -(second - top).expm1() / total,
        (total.log() - depth / total).clamp_min(0.0),
        *divergences,
    )


def _twice(rows: ReduceInput) -> ReduceInput:
    twice = (None if t is None else torch.cat([t, t]) for t in (rows.now, rows.slot, rows.tokens))
    now, slot, tokens = twice
    assert now is not None
    return replace(rows, now=now, slot=slot, tokens=tokens)


def _first(stats: Stats) -> Stats:
    columns: list[Tensor] = [column[:1] for column in vars(stats).values() if column is not None]
    return Stats(*columns)


def _alone(now: Tensor) -> Columns:
    """Token, largest and second logit, sum of the weights, and of weights times depths."""
    z = now.to(working_dtype(now))
    return _softmax(z)[2]


def _compared(now: Tensor, past: Tensor, slot: Tensor) -> Columns:
    """The columns of `_alone`; the past's sum of weights; the gaps weighted by past and by now."""
    z = now.to(working_dtype(now))
    depth, weight, columns = _softmax(z)
    uniform = torch.where(z == -torch.inf, z, 0.0)
    before = past[slot.clamp_min(0)].to(z.dtype)
    y = torch.where((slot == UNIFORM)[:, None], uniform, before)
    past_depth = y - y.amax(-1, keepdim=True)
    past_weight = past_depth.exp()
    gap = past_depth - depth  # infinite where one token of the two is suppressed
    by_past = torch.where(past_weight > 0, past_weight * gap, 0.0).sum(-1)
    by_now = torch.where(weight > 0, weight * gap, 0.0).sum(-1)
    return (*columns, *(column.double() for column in (past_weight.sum(-1), by_past, by_now)))


def _softmax(z: Tensor) -> tuple[Tensor, Tensor, Columns]:
    """Depths, weights, and the columns of `_alone`."""
    token = z.argmax(-1)
    top = z.amax(-1)
    depth = z - top[:, None]
    weight = depth.exp()
    others = torch.arange(z.shape[-1], device=z.device) != token[:, None]
    second = torch.where(others, z, -torch.inf).amax(-1)
    deep = torch.where(weight > 0, weight * depth, 0.0).sum(-1)
    columns = [column.double() for column in (top, second, weight.sum(-1), deep)]
    return depth, weight, (token, *columns)


def _divergences(total: Tensor, columns: Columns, unseen: Tensor) -> list[Tensor]:
    """KL(past || now) and KL(now || past): [N] each."""
    past_total, by_past, by_now = columns
    ratio = total.log() - past_total.log()
    both = by_past / past_total + ratio, -by_now / total - ratio
    return [d.clamp_min(0.0).masked_fill(unseen, 0.0) for d in both]


def _compiled(function: Callable[..., Columns], *tensors: Tensor) -> Columns:
    """Call a function through torch.compile, with a copy of the function for each kind of tensors.

    torch compiles anew for every dtype, number of threads and single row, and gives up on a
    function after eight times.
    """
    kinds = tuple((tensor.dtype, tensor.device, len(tensor) == 1) for tensor in tensors)
    return _copy(function, torch.get_num_threads(), kinds)(*tensors)


@cache
def _copy(function: Callable[..., Columns], *_: object) -> Callable[..., Columns]:
    assert isinstance(function, FunctionType)
    own = FunctionType(function.__code__.replace(), function.__globals__)
    return torch.compile(own, fullgraph=True, dynamic=True)
