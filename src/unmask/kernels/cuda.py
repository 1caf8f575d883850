"""The statistics in Triton: one program per part of a row; each part is read once.

A program writes eleven numbers for its part; `joined` joins the parts of a row in float64.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import torch
import triton
import triton.language as tl
from torch import Tensor

from unmask.kernels.common import NO_HISTORY, ReduceInput, Stats, Unavailable, readable
from unmask.rules.view import BOTH_KL

PART = 4096  # tokens that a program holds at once
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
COLUMNS = 10
LEAST_EXPONENT = -103.97  # exp() of anything lower is 0 in float32


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _reduce_part(  # type: ignore[no-untyped-def]
    now, past, slot, token, columns, now_stride, past_stride, vocabulary, parts, rows,
    compared: tl.constexpr, size: tl.constexpr,
):  # fmt: skip
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    place = part * size + tl.arange(0, size)
    inside = place < vocabulary
    z = tl.load(now + row * now_stride + place, inside, -float("inf")).to(tl.float32)
    top = tl.max(z, 0)
    best = tl.argmax(z, 0)
    base = tl.where(top == -float("inf"), 0.0, top)
    depth = z - base
    weight = tl.exp(depth)
    second = tl.max(tl.where(tl.arange(0, size) == best, -float("inf"), z), 0)
    deep = weight * tl.maximum(depth, -1e4)  # 0 log 0 = 0
    cell, step = columns + row * parts + part, rows * parts
    tl.store(token + row * parts + part, part * size + best)
    tl.store(cell, top)
    tl.store(cell + step, second)
    tl.store(cell + 2 * step, tl.sum(weight, 0))
    tl.store(cell + 3 * step, tl.sum(deep, 0))
    if compared:
        source = tl.load(slot + row).to(tl.int64)
        line = past + tl.maximum(source, 0) * past_stride
        y = tl.load(line + place, inside, -float("inf")).to(tl.float32)
        start = tl.where(z == -float("inf"), z, 0.0)  # uniform over what is not suppressed
        y = tl.where(source == -2, start, y)
        past_top = tl.max(y, 0)
        past_base = tl.where(past_top == -float("inf"), 0.0, past_top)
        past_depth = y - past_base
        past_weight = tl.exp(past_depth)
        forbidden = depth == -float("inf")
        past_forbidden = past_depth == -float("inf")
        odd = forbidden | past_forbidden
        gap = tl.where(odd, 0.0, past_depth) - tl.where(odd, 0.0, depth)
        tl.store(cell + 4 * step, past_top)
        tl.store(cell + 5 * step, tl.sum(past_weight, 0))
        tl.store(cell + 6 * step, tl.sum(past_weight * gap, 0))
        tl.store(cell + 7 * step, tl.sum(weight * gap, 0))
        tl.store(cell + 8 * step, tl.max(tl.where(forbidden, y, -float("inf")), 0))
        tl.store(cell + 9 * step, tl.max(tl.where(past_forbidden, z, -float("inf")), 0))


def prepare() -> torch.device:
    """The CUDA device, or the CPU for Triton's interpreter."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if not _interpreted():
        raise Unavailable("there is no CUDA device")
    return torch.device("cpu")


def serves(rows: ReduceInput) -> bool:
    """Whether Triton runs on their device, reads their dtype, and they ask for KL only."""
    past = rows.now if rows.past is None else rows.past
    here = rows.now.is_cuda or _interpreted()
    same = rows.now.dtype in DTYPES and past.dtype == rows.now.dtype
    return here and same and rows.kl <= BOTH_KL


def reduce_rows(rows: ReduceInput, part: int = PART) -> Stats:
    """Statistics of N rows."""
    count, vocabulary = rows.now.shape
    parts = triton.cdiv(vocabulary, part)
    compared = rows.slot is not None and bool(rows.kl)
    now = readable(rows.now)
    past = now if rows.past is None or not len(rows.past) else readable(rows.past)
    slot = rows.slot if rows.slot is not None else torch.empty(0, device=now.device)
    token = torch.empty((count, parts), dtype=torch.int64, device=now.device)
    columns = torch.empty((COLUMNS, count, parts), device=now.device)
    if count:
        with torch.cuda.device(now.device) if now.is_cuda else nullcontext():
            _reduce_part[count, parts](
                now, past, slot, token, columns, now.stride(0), past.stride(0), vocabulary,
                parts, count, compared=compared, size=part, num_warps=8,
            )  # fmt: skip
    return joined(rows, token, columns.double(), compared)


def _interpreted() -> bool:
    """Whether TRITON_INTERPRET was set when this module was imported."""
    return type(_reduce_part).__name__ == "InterpretedFunction"


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
