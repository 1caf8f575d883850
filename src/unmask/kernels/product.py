"""Products with a weight on the CPU by the C++ kernel: the same bits as torch, in less time.

On several threads torch may split the inputs of a product among them, and the bits of a row then
depend on how many rows there are. The kernel has the bits that torch has on one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from threading import Lock
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear

from unmask.kernels.common import OTHER_BITS, Unavailable
from unmask.kernels.native import TYPES, library

PANEL = 16  # rows of x that lie side by side
SMALLEST = 1 << 17  # weights; with fewer, a call takes longer than the product
SHORTEST = 384  # inputs; MKL adds fewer in one chain
SHARE = 1 << 23  # multiplications per thread: fewer take less time than starting a thread
WEIGHTS = {**TYPES, torch.int8: 3}
_COMPARING = Lock()  # a comparison sets the number of threads of the process for its time
NEEDED = {1: "AVX2", 2: "AVX-512"}  # by the level of the kernel


class Order(NamedTuple):
    """The order in which MKL adds with an instruction set, and the kernel that does the same."""

    level: int  # of the kernel, as in `native.LEVELS`
    fewest: int  # rows; MKL adds fewer in another order, the kernel does not
    narrowest: int  # outputs; MKL adds fewer in another order


ORDERS = (Order(2, 16, 192), Order(1, 4, PANEL))


def serves(weight: Tensor) -> bool:
    """Whether the kernel multiplies with this weight: with torch's bits, those of many rows."""
    if weight.numel() < SMALLEST or weight.device.type != "cpu" or weight.dtype not in WEIGHTS:
        return False
    chosen = order()
    return (
        chosen is not None
        and len(weight) >= chosen.narrowest
        and weight.shape[-1] >= SHORTEST
        and weight.is_contiguous()
    )


def multiply(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, by: Order | None = None
) -> Tensor:
    """x W^T + b with a weight of any dtype in `WEIGHTS`, the rest in float32: [M, K] -> [M, N].

    `by` is the order of the sums (default: torch's here).
    """
    by = by or order() or ORDERS[-1]
    (rows, inputs), outputs = x.shape, len(weight)
    if not (x.is_cpu and weight.is_cpu):
        raise ValueError(f"x and weight must be on the CPU, got {x.device} and {weight.device}")
    if x.dtype != torch.float32 or weight.shape[1:] != x.shape[1:]:
        raise ValueError(f"x must be float32 [M, {weight.shape[1]}], got {x.dtype} {[*x.shape]}")
    if bias is not None and (bias.dtype != torch.float32 or bias.shape != (outputs,)):
        raise ValueError(f"bias must be float32 [{outputs}], got {bias.dtype} {[*bias.shape]}")
    x, weight, out = x.contiguous(), weight.contiguous(), x.new_empty(rows, outputs)
    bias = None if bias is None else bias.contiguous()
    panels = x.new_empty(-(-rows // PANEL) * PANEL, inputs)
    served = library().unmask_multiply(
        by.level, WEIGHTS[weight.dtype], x.data_ptr(), panels.data_ptr(), weight.data_ptr(),
        None if bias is None else bias.data_ptr(), rows, outputs, inputs, out.data_ptr(),
        min(torch.get_num_threads(), 1 + rows * weight.numel() // SHARE),
    )  # fmt: skip
    if not served:
        raise Unavailable(f"it is for x86 processors with {NEEDED[by.level]}")
    return out


def agrees() -> bool:
    """Whether the kernel is there and has the bits of torch's products in float32."""
    return order() is not None


def trouble() -> str | None:
    """Why the kernel is not used here; None if it is."""
    return None if agrees() else _trouble_with(ORDERS[-1])


@cache
def order() -> Order | None:
    """The order that has torch's bits here; None if there is none, or no kernel."""
    with _COMPARING:
        return next((each for each in ORDERS if _trouble_with(each) is None), None)


def _trouble_with(by: Order) -> str | None:
    """Compares the kernel with torch on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _difference(by)
    except Unavailable as error:
        return str(error)
    finally:
        torch.set_num_threads(threads)


def _difference(by: Order) -> str | None:
    with torch.device("cpu"), torch.inference_mode():  # a loader may have set the meta device
        same = all(torch.equal(ours, torchs) for ours, torchs in _examples(by))
    return None if same else f"{OTHER_BITS} product"


def _examples(by: Order) -> Iterator[tuple[Tensor, Tensor]]:
    """Products of the kernel and of torch."""
    generator = torch.Generator().manual_seed(0)
    for rows, inputs, outputs in ((by.fewest, SHORTEST, 512), (33, 1000, 231), (70, 512, 257)):
        x = torch.randn(rows, inputs, generator=generator)
        weight = torch.randn(outputs, inputs, generator=generator)
        bias = torch.randn(outputs, generator=generator)
        yield multiply(x, weight, by=by), torch.mm(x, weight.t())
        yield multiply(x, weight, bias, by), linear(x, weight, bias)
