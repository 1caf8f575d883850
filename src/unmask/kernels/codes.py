"""Products in bfloat16 with weights of 8 or 4 bits on the CPU by the C++ kernel."""

from __future__ import annotations

import warnings
from functools import cache

import torch
from torch import Tensor

from unmask.kernels.common import Unavailable
from unmask.kernels.native import library
from unmask.kernels.product import PANEL, SHARE

EVEN = {8: 2, 4: 32}  # the number of inputs is a multiple of this, by the bits of a code
LARGEST_ERROR = 0.02  # of a result, relative to the deviation of all


def serves(x: Tensor, bits: int, inputs: int) -> bool:
    """Whether the kernel multiplies these rows with codes of so many bits."""
    return (
        x.dtype == torch.bfloat16
        and x.device.type == "cpu"
        and inputs % EVEN[bits] == 0
        and not torch.compiler.is_compiling()
        and not (torch.is_grad_enabled() and x.requires_grad)
        and trouble() is None
    )


def multiply_codes(
    x: Tensor, codes: Tensor, scale: Tensor, bias: Tensor | None, bits: int
) -> Tensor:
    """x W^T + b in bfloat16, summed in float32 and rounded once: [M, K] -> [M, N].

    8 bits: int8 codes [N, K] and a float32 scale [N]. 4 bits: codes [N, K / 2] with column k in the
    lower bits and k + K / 2 in the upper ones, 8 for zero, and a bfloat16 scale [N, K / 32].
    """
    (rows, inputs), outputs = x.shape, len(codes)
    width, scales = (inputs, [outputs]) if bits == 8 else (inputs // 2, [outputs, inputs // 32])
    if x.dtype != torch.bfloat16 or inputs % EVEN[bits] or codes.shape != (outputs, width):
        raise ValueError(f"x must be bfloat16 rows for codes {[*codes.shape]}, got {[*x.shape]}")
    if [*scale.shape] != scales:
        raise ValueError(f"scale must have the shape {scales}, got {[*scale.shape]}")
    x, codes = x.contiguous(), codes.contiguous()
    scale = scale.to(torch.float32 if bits == 8 else torch.bfloat16).contiguous()
    bias = None if bias is None else bias.float().contiguous()
    out = x.new_empty(rows, outputs)
    panels = x.new_empty(-(-rows // PANEL) * PANEL, inputs)
    served = library().unmask_multiply_codes(
        bits, x.data_ptr(), panels.data_ptr(), codes.data_ptr(), scale.data_ptr(),
        None if bias is None else bias.data_ptr(), rows, outputs, inputs, out.data_ptr(),
        min(torch.get_num_threads(), 1 + rows * outputs * inputs // SHARE),
    )  # fmt: skip
    if not served:
        raise Unavailable("it is for x86 processors with AVX-512 BF16")
    return out


@cache
def trouble() -> str | None:
    """Why the kernel is not used here; None if it is."""
    with torch.device("cpu"), torch.inference_mode():
        for bits in EVEN:
            try:
                if _is_wrong(bits):
                    reason = f"its products with {bits} bits are wrong"
                    warnings.warn(
                        f"the kernel for weights of 8 and 4 bits is not used: {reason}; torch does "
                        "its work, slower; see 'unmask doctor'",
                        RuntimeWarning,
                        stacklevel=3,
                    )
                    return reason
            except Unavailable as problem:
                return str(problem)
    return None


def _is_wrong(bits: int) -> bool:
    """Whether the kernel's products with codes of so many bits are not those of float64."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(37, 416, generator=generator).bfloat16()
    if bits == 8:
        codes = torch.randint(-127, 128, (101, 416), generator=generator).to(torch.int8)
        scale = torch.rand(101, generator=generator)
        weight = codes.double() * scale[:, None]
    else:
        codes = torch.randint(256, (101, 208), generator=generator).to(torch.uint8)
        scale = torch.rand(101, 13, generator=generator).bfloat16()
        steps = torch.cat([codes & 15, codes >> 4], -1).double() - 8
        weight = (steps * scale.double().repeat_interleave(32, -1)).bfloat16().double()
    exact = x.double() @ weight.t()
    error = multiply_codes(x, codes, scale, None, bits).double() - exact
    return not bool(error.abs().max() <= LARGEST_ERROR * exact.std())  # NaN is wrong, too
