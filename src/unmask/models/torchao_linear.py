"""Linear maps in 8 or 4 bits on a GPU: torchao keeps the weight and multiplies by it."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (the field's name for it)

from unmask.errors import ModelError
from unmask.models.quantized import GROUP, QuantizedLinear


class TorchaoLinear(QuantizedLinear):
    """x W^T + b with a weight of torchao: int8 by outputs, int4 by groups of 32 inputs."""

    def convert(self, weight: Tensor) -> None:
        """Keep a weight [N, K] in few bits, as the parameter `weight`."""
        self.weight = nn.Parameter(weight, requires_grad=False)
        torchao = quantization()
        if self.kind == "int8":
            config = torchao.Int8WeightOnlyConfig()
        else:
            config = torchao.Int4WeightOnlyConfig(group_size=GROUP)
        torchao.quantize_(self, config)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x.to(self.weight.dtype), self.weight, self.bias).to(x.dtype)


def quantization() -> Any:
    """The module of torchao; raises with what to do if it is not installed."""
    try:
        import torchao.quantization as torchao
    except ImportError:
        raise ModelError(
            "quantize on a GPU needs the package torchao, which is not installed; install "
            "unmask[quantize], or use device cpu, or leave quantize out"
        ) from None
    return torchao
