"""Linear maps with weights that are laid out once as the processor's product reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (the field's name for it)

from unmask.errors import ModelError
from unmask.models.layers import ConvertedLinear, Linear
from unmask.models.memory import free_memory
from unmask.models.products import is_recorded, multiplies, several_rows

PACKED = (torch.float32, torch.bfloat16)
SPARE = 0.2  # share of the free memory that packed weights leave to everything else
_ops = torch.ops.mkldnn


class PackedLinear(ConvertedLinear):
    """x W^T + b by oneDNN, with a weight in the layout of its product.

    torch lays out a weight again in every call. In bfloat16 the bits are those of torch's product;
    in float32 the sums are taken in another order, so results move by rounding. A row's result does
    not depend on the other rows.
    """

    packed: Tensor | None = None  # [N, K] in an opaque layout; None: `weight` is an ordinary one

    def convert(self, weight: Tensor) -> None:
        """Lay out a weight [N, K] in the dtype of this map."""
        self.packed = _ops._reorder_linear_weight(weight.to(self.weight.dtype).contiguous())
        self.register_parameter("weight", None)

    def forward(self, x: Tensor) -> Tensor:
        if self.packed is None:
            return super().forward(x)
        if x.dtype != self.packed.dtype or is_recorded(x):
            return F.linear(x, self.packed.to_dense(), self.bias)
        flat = several_rows(x.reshape(-1, self.in_features))
        out: Tensor = _ops._linear_pointwise(flat, self.packed, self.bias, "none", [], "")
        return out[: x.shape[:-1].numel()].view(*x.shape[:-1], self.out_features)

    def unpack(self) -> None:
        """Turn into an ordinary linear map."""
        if self.packed is not None:
            self.weight = nn.Parameter(self.packed.to_dense(), requires_grad=False)
            self.packed = None

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> PackedLinear:
        """Another device or dtype needs the ordinary weight."""
        self.unpack()
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """A saved model holds the ordinary weight."""
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self.packed is not None:
            destination[f"{prefix}weight"] = self.packed.to_dense()

    def __getstate__(self) -> dict[str, Any]:
        """A copy or a pickle holds the ordinary weight: an opaque one cannot be copied."""
        state = {**vars(self), "packed": None}
        if self.packed is not None:
            weight = nn.Parameter(self.packed.to_dense(), requires_grad=False)
            state["_parameters"] = {**self._parameters, "weight": weight}
        return state


def pack_layers(
    module: nn.Module, dtype: torch.dtype, device: torch.device, pack: bool | None
) -> None:
    """Replace the linear maps of an empty network by packed ones.

    `pack` None means: only where no bit of a result changes and the memory has room. A packed
    weight is not shared with the file, as one that is mapped from it can be.
    """
    if pack is False:
        return
    linears = [(name, part) for name, part in module.named_modules() if type(part) is Linear]
    if pack is None:
        size = sum(part.weight.numel() for _, part in linears) * dtype.itemsize
        if not keeps_bits(dtype, device) or size > (1 - SPARE) * free_memory(device):
            return
    elif reason := trouble(dtype, device):
        raise ModelError(f"pack cannot be used: {reason}; leave it out")
    for name, linear in linears:
        owner, _, leaf = name.rpartition(".")
        bias = linear.bias is not None
        packed = PackedLinear(linear.in_features, linear.out_features, bias, dtype=dtype)
        setattr(module.get_submodule(owner), leaf, packed)


def keeps_bits(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether packed products have the bits of torch's here: bfloat16, where it is multiplied."""
    return dtype == torch.bfloat16 and trouble(dtype, device) is None and _same_bits(dtype)


def trouble(dtype: torch.dtype, device: torch.device) -> str | None:
    """Why weights cannot be packed for a dtype and a device; None if they can."""
    if device.type != "cpu":
        return f"it is for the CPU, and the device is {device}"
    if dtype not in PACKED:
        return f"it is for float32 and bfloat16, and the dtype is {dtype}".replace("torch.", "")
    if dtype == torch.bfloat16 and not multiplies(dtype):
        return "this processor does not multiply bfloat16"
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return "this torch has no oneDNN"
    return None


@cache
def _same_bits(dtype: torch.dtype) -> bool:
    """Whether packed products agree with torch's bit by bit, for weights of many sizes."""
    with torch.device("cpu"), torch.inference_mode():  # a loader may have set the meta device
        try:
            return all(torch.equal(packed, plain) for packed, plain in _examples(dtype))
        except RuntimeError:  # torch does not pack this dtype on this processor
            return False


def _examples(dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
    """Results of packed products and of torch's."""
    generator = torch.Generator().manual_seed(0)
    for rows, inputs, outputs in ((2, 130, 70), (16, 896, 128), (33, 1000, 131), (70, 3072, 512)):
        x = torch.randn(rows, inputs, generator=generator).to(dtype)
        linear = PackedLinear(inputs, outputs, dtype=dtype)
        weight = torch.randn(outputs, inputs, generator=generator).to(dtype)
        linear.bias = nn.Parameter(torch.randn(outputs, generator=generator).to(dtype))
        linear.convert(weight)
        yield linear(x), F.linear(x, weight, linear.bias)
