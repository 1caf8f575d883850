"""Products with a weight on the CPU by the C++ kernel: the same bits as torch, in less time."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import linear

from unmask.kernels.common import Unavailable
from unmask.kernels.native import TYPES, library

PANEL = 16  # rows of x that the kernel takes at once
FEWEST = 4  # rows that torch multiplies by the routine with this order of sums
SMALLEST = 1 << 17  # weights; with fewer, a call takes longer than the product
SHORTEST = 384  # inputs; MKL adds fewer in one chain
SHARE = 1 << 23  # multiplications per thread: fewer take less time than starting a thread
WEIGHTS = {**TYPES, torch.int8: 3}


def serves(weight: Tensor) -> bool:
    """Whether the kernel multiplies with this weight, with torch's bits from `FEWEST` rows on."""
    return (
        weight.numel() >= SMALLEST
        and weight.device.type == "cpu"
        and weight.dtype in WEIGHTS
        and len(weight) >= PANEL
        and weight.shape[-1] >= SHORTEST
        and weight.is_contiguous()
        and agrees()
    )


def multiply(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b with a weight of any dtype in `WEIGHTS`, the rest in float32: [M, K] -> [M, N]."""
    (rows, inputs), outputs = x.shape, len(weight)
    if x.dtype != torch.float32 or weight.shape[1:] != x.shape[1:]:
        raise ValueError(f"x must be float32 [M, {weight.shape[1]}], got {x.dtype} {[*x.shape]}")
    if bias is not None and (bias.dtype != torch.float32 or bias.shape != (outputs,)):
        raise ValueError(f"bias must be float32 [{outputs}], got {bias.dtype} {[*bias.shape]}")
    x, weight, out = x.contiguous(), weight.contiguous(), x.new_empty(rows, outputs)
    bias = None if bias is None else bias.contiguous()
    panels = x.new_empty(-(-rows // PANEL) * PANEL, inputs)
    served = library().unmask_multiply(
        WEIGHTS[weight.dtype], x.data_ptr(), panels.data_ptr(), weight.data_ptr(),
        None if bias is None else bias.data_ptr(), rows, outputs, inputs, out.data_ptr(),
        min(torch.get_num_threads(), 1 + rows * weight.numel() // SHARE),
    )  # fmt: skip
    if not served:
        raise Unavailable("it is for x86 processors with AVX2")
    return out


def agrees() -> bool:
    """Whether the kernel is there and has the bits of torch's products in float32."""
    return trouble() is None


@cache
def trouble() -> str | None:
    """Why the kernel is not used here; None if it is."""
    generator = torch.Generator().manual_seed(0)
    for rows, inputs, outputs in ((FEWEST, SHORTEST, 512), (33, 1000, 131), (70, 512, 257)):
        x = torch.randn(rows, inputs, generator=generator)
        weight = torch.randn(outputs, inputs, generator=generator)
        bias = torch.randn(outputs, generator=generator)
        try:
            same = torch.equal(multiply(x, weight), torch.mm(x, weight.t()))
            if not same or not torch.equal(multiply(x, weight, bias), linear(x, weight, bias)):
                return "it does not have the bits of torch's product"
        except Unavailable as error:
            return str(error)
    return None
