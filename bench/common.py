"""Random models of real shapes, and measurements of peak memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import nn

from unmask.kernels.layer import plain_normalise, plain_rotate
from unmask.models import layers, products
from unmask.models.architecture import Architecture
from unmask.models.denoiser import ModelSpec
from unmask.models.layers import ConvertedLinear
from unmask.models.packed import pack_layers
from unmask.models.pretrained import Pretrained
from unmask.models.transformer import Transformer

LLADA_MASK, LLADA_EOS, LLADA_VOCABULARY = 126336, 126081, 126464
HEAD_SPREAD = 4.5  # the standard deviation of the logits
TRUNK_SPREAD = 2.0  # enough that masked positions differ in their token and its probability


@dataclass(frozen=True)
class Shape:
    """Sizes of a model."""

    layers: int
    hidden: int
    vocabulary: int = LLADA_VOCABULARY


def head_share(model: Pretrained) -> float:
    """The head's share of the parameters that a forward multiplies by (not the embedding)."""
    embedding = model.module.embed.weight.numel()
    return model.module.head.weight.numel() / (model.parameters - embedding)


def llada_shaped(shape: Shape, seed: int = 0) -> Pretrained:
    """A random float32 model of LLaDA's kind, with its special tokens if it has its vocabulary."""
    hidden, vocabulary = shape.hidden, shape.vocabulary
    arch = Architecture(
        vocab_size=vocabulary,
        hidden=hidden,
        layers=shape.layers,
        heads=hidden // 64,
        kv_heads=hidden // 64,
        head_dim=64,
        mlp=3 * hidden,
        norm_eps=1e-5,
        rope_theta=500000.0,
        rotary_dim=64,
        rope_in_float32=True,
    )
    torch.manual_seed(seed)
    module = Transformer(arch)
    for name, parameter in module.named_parameters():
        if "norm" in name:
            nn.init.ones_(parameter)
        else:
            spread = HEAD_SPREAD if "head" in name else TRUNK_SPREAD
            nn.init.normal_(parameter, std=spread / hidden**0.5)
    module.requires_grad_(False)
    if vocabulary == LLADA_VOCABULARY:
        mask, eos = LLADA_MASK, LLADA_EOS
    else:
        mask, eos = vocabulary - 1, vocabulary - 2
    spec = ModelSpec(mask, vocabulary, eos, name="llada-shaped")
    return Pretrained(module.eval(), spec)


def converted(
    model: Pretrained, dtype: torch.dtype, replace_layers: Callable[[nn.Module], None]
) -> Pretrained:
    """The same model in a dtype, with linear maps that `replace_layers` chooses, as loaded ones."""
    module = deepcopy(model.module)
    weights = {name: part for name, part in model.module.named_modules() if hasattr(part, "weight")}
    with torch.device("meta"):
        replace_layers(module)
    for name, part in module.named_modules():
        if isinstance(part, ConvertedLinear):
            part.convert(weights[name].weight.detach())
    for parameter in module.parameters():
        parameter.data = parameter.data.to(dtype)
    return replace(model, module=module)


def as_loaded(model: Pretrained, dtype: torch.dtype, pack: bool | None = None) -> Pretrained:
    """The same model as `load` would give it: with packed weights where that is the default."""
    return converted(model, dtype, lambda module: pack_layers(module, dtype, model.device, pack))


@contextmanager
def torch_products() -> Iterator[None]:
    """Products as torch makes them, as in any model that is not ours."""
    by_torch = {"multiplies": lambda dtype: True, "serves": lambda weight: False}
    with mock.patch.multiple(products, **by_torch):
        yield


@contextmanager
def torch_layers() -> Iterator[None]:
    """Norms, rotations and sums as torch makes them, each result in a tensor of its own."""
    with (
        mock.patch.object(layers, "normalise", plain_normalise),
        mock.patch.object(layers, "rotate", plain_rotate),
        mock.patch.object(layers, "may_overwrite", return_value=False),
    ):
        yield


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function in its own process, to measure its own peak of memory."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


class PeakMemory:
    """How far resident memory rises above where it stood, in bytes (Linux).

    The kernel's high-water mark is reset first; getrusage would inherit the parent's. Memory that
    was freed goes back to the system first, or it would be taken again without being counted.
    """

    def __enter__(self) -> PeakMemory:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        self.before = status("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        self.extra = status("VmHWM") - self.before


def status(key: str) -> int:
    """A size of this process in bytes, such as VmHWM or RssAnon (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1]) * 1024
