"""Linear maps with weights in 8 or 4 bits; activations stay as they are."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from unmask.errors import ModelError, UnknownName, shown
from unmask.kernels.codes import multiply_codes, serves
from unmask.models.architecture import Architecture
from unmask.models.config import Config
from unmask.models.layers import ConvertedLinear, Linear
from unmask.models.products import multiplies, strips, widened_product
from unmask.models.words import QUANTIZED

BITS = {"int8": 8, "int4": 4}
GROUP = 32  # numbers of a row that share a scale in int4
CPU = torch.device("cpu")


class QuantizedLinear(ConvertedLinear):
    """x W^T + b with the weight as small whole numbers times scales.

    The weight is widened a part at a time and multiplied, so activations keep their precision and a
    row's result does not depend on the other rows of a batch. `int8` has one
    scale for every output; `int4` one for every 32 inputs of an output.
    """

    codes: Tensor  # int8: [N, K]; int4: [N, K / 2], column k below and k + K / 2 above
    scale: Tensor  # int8: [N] float32; int4: [N, K / 32] bfloat16

    def __init__(self, inputs: int, outputs: int, bias: bool, kind: str) -> None:
        super().__init__(inputs, outputs, bias=bias)
        self.kind = kind
        self.register_buffer("codes", None)
        self.register_buffer("scale", None)

    def convert(self, weight: Tensor) -> None:
        """Keep a weight [N, K] in few bits."""
        make = _int8 if self.kind == "int8" else _int4
        first = make(weight[:1].float())
        self.codes, self.scale = (part.new_empty(len(weight), *part.shape[1:]) for part in first)
        for strip in strips(self.out_features, self.in_features):
            self.codes[strip], self.scale[strip] = make(weight[strip].float())
        self.register_parameter("weight", None)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, self.in_features)  # [M, K]
        if serves(flat, BITS[self.kind], self.in_features):
            out = multiply_codes(flat, self.codes, self.scale, self.bias, BITS[self.kind])
        else:
            out = self._by_strips(flat.to(_working_dtype(x)))
        return out.to(x.dtype).view(*x.shape[:-1], self.out_features)

    def _by_strips(self, flat: Tensor) -> Tensor:
        """The product with parts of the weight that are widened one after another: [M, N]."""
        out = widened_product(flat, self.codes, self.widened)
        if self.kind == "int8":
            out *= self.scale
        return out if self.bias is None else out.add_(self.bias)

    def widened(self, strip: slice, dtype: torch.dtype) -> Tensor:
        """Rows of the weight; of an int8 weight without its scales, which the output gets."""
        codes = self.codes[strip]
        if self.kind == "int8":
            return codes.to(dtype)
        wide = torch.empty(len(codes), 2, codes.shape[-1], dtype=dtype, device=codes.device)
        wide[:, 0], wide[:, 1] = codes & 15, codes >> 4
        groups = wide.view(len(codes), -1, GROUP).sub_(8).mul_(self.scale[strip, :, None])
        return groups.view(len(codes), -1)


def quantize_layers(
    module: nn.Module, arch: Architecture, kind: str, device: torch.device = CPU
) -> None:
    """Replace the linear maps of all layers of an empty transformer; raises where it cannot.

    The embedding, the head and the norms stay as they are. On a GPU the maps are torchao's.
    """
    if kind not in QUANTIZED:
        raise UnknownName("quantisation", kind, QUANTIZED)
    if arch.experts is not None:
        raise ModelError(
            f"quantize {kind!r} does not support mixtures of experts (LLaDA-MoE, LLaDA2); leave it "
            "out, or in Python spread the layers over devices with load(..., device_map='auto')"
        )
    make = _linear_for(device)
    linears = [
        (f"layers.{name}", child)
        for name, child in module.get_submodule("layers").named_modules()
        if isinstance(child, Linear)
    ]
    for name, linear in linears:
        if kind == "int4" and linear.in_features % GROUP:
            raise ModelError(
                f"int4 needs rows of a multiple of {GROUP} numbers, and {name} has "
                f"{linear.in_features}; use int8"
            )
        small = make(linear.in_features, linear.out_features, linear.bias is not None, kind)
        owner, _, leaf = name.rpartition(".")
        setattr(module.get_submodule(owner), leaf, small)


def _linear_for(device: torch.device) -> type[QuantizedLinear]:
    """The class of the maps on a device; raises if it needs what is not installed."""
    if device.type != "cuda":
        return QuantizedLinear
    from unmask.models.torchao_linear import TorchaoLinear, quantization

    quantization()
    return TorchaoLinear


def refuse_quantized(config: Config, folder: Path) -> None:
    """Raise if other software has already quantised the weights of a folder."""
    entry = config.get("quantization_config") or config.get("compression_config")
    if entry is None and not (folder / "quantize_config.json").is_file():
        return
    named = entry if isinstance(entry, dict) else {"quant_method": "gptq"}  # AutoGPTQ's file
    method = named.get("quant_method") or named.get("format")
    how = "by an unnamed method" if method is None else shown(method)
    raise ModelError(
        f"{config.file}: the weights are already quantised ({how}), in a format that "
        "unmask does not read; take the original checkpoint, and load it with quantize int8 or int4"
    )


def _int8(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Codes in [-127, 127] and the scale of every row: the largest number becomes 127."""
    scale = (weight.abs().amax(-1) / 127).clamp_min(torch.finfo(torch.float32).tiny)
    return (weight / scale[:, None]).round_().to(torch.int8), scale


def _int4(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Codes in [0, 15] with 8 for zero, two in a byte, and the scale of every group.

    The number of the largest size becomes code 0, the only one that is 8 steps from zero.
    """
    groups = weight.view(len(weight), -1, GROUP)
    extreme = groups.gather(-1, groups.abs().argmax(-1, keepdim=True))
    scale = (extreme / -8).to(torch.bfloat16)
    steps = groups / torch.where(scale == 0, 1.0, scale.float())
    codes = (steps.round_() + 8).clamp_(0, 15).to(torch.uint8).view(len(weight), 2, -1)
    return codes[:, 0] | codes[:, 1] << 4, scale[..., 0]


def _working_dtype(x: Tensor) -> torch.dtype:
    """The dtype to multiply in: that of the activations, where the device multiplies it fast."""
    if x.device.type == "cpu" and not (x.dtype == torch.bfloat16 and multiplies(x.dtype)):
        return torch.float64 if x.dtype == torch.float64 else torch.float32
    return x.dtype
