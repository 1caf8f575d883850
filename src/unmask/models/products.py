"""Products with a weight, also with one in a dtype that the processor cannot multiply fast."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (the field's name for it)

from unmask.kernels.product import SHORTEST, SMALLEST, agrees, multiply, serves

STRIP = 1 << 19  # weights that are widened at once on the CPU: 2 MB, which a cache holds

# The instructions that multiply a dtype; x86 processors without them convert number by number.
INSTRUCTIONS = {
    torch.bfloat16: ("amx_bf16", "avx512_bf16"),
    torch.float16: ("amx_fp16", "avx512_fp16"),
}

Widen = Callable[[slice, torch.dtype], Tensor]  # some rows of a weight in a wider dtype


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b, rounded once.

    In float32 the result has the bits that torch's has for many rows on one thread; with a small
    weight it is torch's own. In bfloat16 or float16, on an x86 processor that
    does not multiply it, the weight is widened to float32 part by part and multiplied: 5 to 7 times
    as fast as torch's own product. The sums are taken in another order, so about one result in
    5,000 is rounded to the next number.
    """
    if x.dtype == torch.float32 and weight.numel() < SMALLEST:  # before slower checks
        return F.linear(x, weight, bias)
    if x.device.type != "cpu" or x.dtype != weight.dtype or is_recorded(x, weight):
        return F.linear(x, weight, bias)
    rows = x.shape[:-1].numel()
    if x.dtype == torch.float32 and serves(weight):
        out = multiply(x.reshape(rows, -1), weight, bias)
    elif x.dtype in INSTRUCTIONS and not multiplies(x.dtype):
        out = widened_product(x.reshape(rows, -1).float(), weight, partial(_widened, weight))
        if bias is not None:
            out += bias
    else:
        return F.linear(x, weight, bias)
    return out.to(x.dtype).view(*x.shape[:-1], len(weight))


def widened_product(flat: Tensor, stored: Tensor, widen: Widen) -> Tensor:
    """x W^T for float32 rows and a weight [N, K] that is stored in a narrower dtype: [M, N]."""
    if flat.dtype == torch.float32 and serves(stored):
        return multiply(flat, stored)
    return in_strips(flat, len(stored), widen)


def is_recorded(x: Tensor, weight: Tensor | None = None) -> bool:
    """Whether torch must see the product: it compiles it, or takes its gradient."""
    if torch.compiler.is_compiling() or type(weight) not in (Tensor, nn.Parameter, type(None)):
        return True
    wanted = x.requires_grad or (weight is not None and weight.requires_grad)
    return wanted and torch.is_grad_enabled()


def in_strips(flat: Tensor, outputs: int, widen: Widen) -> Tensor:
    """x W^T for rows [M, K]; on the CPU a strip of W at a time: [M, N].

    A row's result does not depend on the other rows. In float32 the kernel multiplies if it is
    there: on several threads torch may add the inputs of a row as the number of rows suggests.
    """
    (rows, inputs), flat = flat.shape, several_rows(flat)
    on_cpu = flat.dtype == torch.float32 and flat.device.type == "cpu"
    by_kernel = on_cpu and not is_recorded(flat) and agrees()
    out = flat.new_empty(len(flat), outputs)
    for strip in strips(outputs, inputs) if flat.device.type == "cpu" else [slice(None)]:
        wide = widen(strip, flat.dtype)
        if by_kernel and inputs >= SHORTEST:
            out[:, strip] = multiply(flat, wide)
        else:
            torch.mm(flat, wide.t(), out=out[:, strip])
    return out[:rows]


def least_rows(dtype: torch.dtype) -> int:
    """With fewer rows torch multiplies by another routine, which rounds in another way."""
    return 16 if dtype == torch.float32 else 4


def several_rows(flat: Tensor) -> Tensor:
    """Rows [M, K], with zeros below if they are few: so each is rounded as among many."""
    (rows, inputs), least = flat.shape, least_rows(flat.dtype)
    if rows >= least:
        return flat
    return torch.cat([flat, flat.new_zeros(least - rows, inputs)])


def strips(outputs: int, inputs: int) -> Iterator[slice]:
    """The rows of a weight in parts that fit into a processor's cache."""
    height = max(1, STRIP // inputs)
    for first in range(0, outputs, height):
        yield slice(first, min(first + height, outputs))


@cache
def multiplies(dtype: torch.dtype) -> bool:
    """Whether the processor multiplies bfloat16 or float16 itself; unknown ones count as if so."""
    abilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    if abilities.get("architecture") != "x86_64":
        return True
    return any(abilities.get(name) for name in INSTRUCTIONS[dtype])


def _widened(weight: Tensor, strip: slice, dtype: torch.dtype) -> Tensor:
    return weight[strip].to(dtype)
