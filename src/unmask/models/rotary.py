"""Checks and repairs the rotary buffers of models loaded by transformers 5.

transformers 5 builds models on the meta device. Buffers that are not saved, and that remote code
fills in its constructor, stay uninitialised: the logits are wrong, without a warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from unmask.errors import ModelError

KNOWN = ("inv_freq", "original_inv_freq")


def is_at_risk(model: Any) -> bool:
    """Whether the class is remote code (stored beside the weights) under transformers 5."""
    if not type(model).__module__.startswith("transformers_modules"):
        return False
    import transformers

    return int(transformers.__version__.split(".")[0]) >= 5


def check_rotary(model: Any) -> None:
    """Raise if a buffer of remote code does not hold the rotary frequencies."""
    if not is_at_risk(model):
        return
    for name, buffer, expected in _buffers(model):
        if not torch.allclose(buffer.float().cpu(), expected, rtol=1e-5, atol=0):
            raise ModelError(
                f"{type(model).__name__}: the buffer {name!r} does not hold rotary frequencies; "
                "transformers 5 left it uninitialised and the logits are wrong; call "
                "unmask.models.rotary.repair_rotary(model), or load the folder with unmask.load"
            )


def repair_rotary(model: Any) -> int:
    """Write the rotary frequencies of the config into the buffers; returns their number."""
    count = 0
    for _, buffer, expected in _buffers(model):
        buffer.copy_(expected.to(buffer))
        count += 1
    check_rotary(model)
    return count


def _buffers(model: nn.Module) -> Iterator[tuple[str, Tensor, Tensor]]:
    """The name, value and right value of every unsaved buffer; raises if one is not known."""
    for owner, module in model.named_modules():
        for leaf in sorted(module._non_persistent_buffers_set):
            buffer = getattr(module, leaf)
            name = f"{owner}.{leaf}" if owner else leaf
            if buffer is None:
                continue
            if leaf not in KNOWN:
                raise ModelError(
                    f"{type(model).__name__}: transformers 5 leaves the buffer {name!r} "
                    "uninitialised, and its right value is not known; load the folder with "
                    "unmask.load, or use transformers 4"
                )
            size = 2 * len(buffer)
            share = torch.arange(0, size, 2, dtype=torch.float32) / size
            yield name, buffer, 1.0 / _theta(model.config) ** share


def _theta(config: Any) -> float:
    parameters = getattr(config, "rope_parameters", None) or {}
    theta = getattr(config, "rope_theta", None) or parameters.get("rope_theta")
    scaling = getattr(config, "rope_scaling", None) or parameters
    kind = scaling.get("rope_type", scaling.get("type", "default")) if scaling else "default"
    if theta is None or kind != "default":
        raise ModelError(
            f"the config names no plain rotary base (rope_theta {theta}, type {kind!r}), so the "
            "frequencies cannot be recomputed"
        )
    return float(theta)
