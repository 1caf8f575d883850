"""The statistics in Triton: one program per part of a row; each part is read once.

A program writes eleven numbers for its part, and `parts` joins the few dozen parts of a row.
"""

from __future__ import annotations

from contextlib import nullcontext

import torch
import triton
import triton.language as tl

from unmask.kernels.common import ReduceInput, Stats, Unavailable, readable
from unmask.kernels.parts import joined

PART = 4096  # tokens that a program holds at once
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
COLUMNS = 10


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
    """Whether Triton runs on the device of these rows, and the kernel reads their dtype."""
    past = rows.now if rows.past is None else rows.past
    here = rows.now.is_cuda or _interpreted()
    return here and rows.now.dtype in DTYPES and past.dtype == rows.now.dtype


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
