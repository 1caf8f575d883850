"""Norms and rotations on the CPU by the C++ kernel: the same bits as torch, in one pass each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import rms_norm

from unmask.kernels.common import OTHER_BITS, Unavailable
from unmask.kernels.native import TYPES, library

LANES = 8  # numbers that the kernel takes at once
SHARE = 1 << 17  # numbers per thread: fewer take less time than starting a thread
DTYPES = (torch.float32, torch.bfloat16)


def normalise(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """weight * (x / rms(x)) over the last axis: [..., D] -> [..., D]."""
    if not (_is_read(x) and weight.dtype == x.dtype and agrees() and weight.is_contiguous()):
        return plain_normalise(x, weight, eps)
    return _normalise(x, weight, eps)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x * cos + (x rolled by half) * sin for the first R features: [B, Q, H, D], [1, Q, 1, R]."""
    turned = cos.shape[-1]
    if not (
        _is_read(x)
        and turned % (2 * LANES) == 0
        and cos.shape[0] == 1
        and cos.dtype in (torch.float32, x.dtype)
        and cos.is_contiguous()
        and sin.is_contiguous()
        and agrees()
    ):
        return plain_rotate(x, cos, sin)
    return _rotate(x, cos, sin)


def plain_normalise(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """The same by torch: normalised in float32, and cast back before the weight."""
    if x.dtype == torch.float32:  # the same formula, in one call
        return rms_norm(x, weight.shape, weight, eps)
    y = x.float()
    y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps)
    return weight * y.to(x.dtype)


def plain_rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The same by torch, in the dtype of the table."""
    size = cos.shape[-1]
    part = (x if size == x.shape[-1] else x[..., :size]).to(cos.dtype)
    turned = (part * cos + part.roll(size // 2, -1) * sin).to(x.dtype)
    return torch.cat([turned, x[..., size:]], -1) if size < x.shape[-1] else turned


def _is_read(x: Tensor) -> bool:
    """Whether the kernel reads this tensor, and torch need not see what is done with it."""
    return (
        type(x) is Tensor
        and x.is_cpu
        and x.dtype in DTYPES
        and x.shape[-1] % LANES == 0
        and x.is_contiguous()
        and not (x.requires_grad and torch.is_grad_enabled())
        and not torch.compiler.is_compiling()
    )


def _normalise(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    out, size = torch.empty_like(x), x.shape[-1]
    served = library().unmask_normalise(
        TYPES[x.dtype], x.data_ptr(), weight.data_ptr(), eps, x.numel() // size, size,
        out.data_ptr(), _threads(x),
    )  # fmt: skip
    return _checked(out, served)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    rows, places, heads, size = x.shape
    out = torch.empty_like(x)
    served = library().unmask_rotate(
        TYPES[x.dtype], TYPES[cos.dtype], x.data_ptr(), cos.data_ptr(), sin.data_ptr(),
        rows * places, heads, size, cos.shape[-1], places, out.data_ptr(), _threads(x),
    )  # fmt: skip
    return _checked(out, served)


def _checked(out: Tensor, served: int) -> Tensor:
    if not served:
        raise Unavailable("it is for x86 processors with AVX2")
    return out


def _threads(x: Tensor) -> int:
    shares = 1 + x.numel() // SHARE
    return shares if shares == 1 else min(torch.get_num_threads(), shares)


def agrees() -> bool:
    """Whether the kernel is there and has the bits of torch."""
    return trouble() is None


@cache
def trouble() -> str | None:
    """Why the kernel is not used here; None if it is."""
    with torch.device("cpu"), torch.inference_mode():  # a loader may have set the meta device
        try:
            for ours, torchs in _examples():
                if not torch.equal(ours, torchs):
                    return f"{OTHER_BITS} norms and rotations"
        except Unavailable as error:
            return str(error)
    return None


def _examples() -> Iterator[tuple[Tensor, Tensor]]:
    """Results of the kernel and of torch, for rows of many sizes."""
    generator = torch.Generator().manual_seed(0)
    for dtype in DTYPES:
        for size in (8, 64, 104, 128, 1000, 1024, 4096, 16384):
            x, weight = 3 * torch.randn(5, size, generator=generator), torch.randn(size)
            given = (x.to(dtype), weight.to(dtype), 1e-5)
            yield _normalise(*given), plain_normalise(*given)
        for table in {dtype, torch.float32}:
            x = torch.randn(2, 3, 4, 72, generator=generator).to(dtype)
            angles = torch.randn(2, 1, 3, 1, 64, generator=generator).to(table)
            yield _rotate(x, *angles), plain_rotate(x, *angles)
