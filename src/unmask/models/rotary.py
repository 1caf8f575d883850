"""Rotary buffers of models that came through transformers 5, which may hold anything at all.

transformers 5 builds models on the meta device and leaves buffers that are not saved, and that
remote code fills in its constructor, as uninitialised memory: no warning, wrong logits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from unmask.errors import ModelError

KNOWN = ("inv_freq", "original_inv_freq")


def is_remote(model: Any) -> bool:
    """Whether the class came as code beside the weights."""
    return type(model).__module__.startswith("transformers_modules")


def check_rotary(model: Any) -> None:
    """Raise where a buffer of remote code does not hold the frequencies it must."""
    if not is_remote(model) or _transformers_major() < 5:
        return
    for name, buffer, expected in _buffers(model):
        if not torch.allclose(buffer.float().cpu(), expected, rtol=1e-5, atol=0):
            raise ModelError(
                f"{type(model).__name__}: the buffer {name!r} does not hold rotary frequencies; "
                "transformers 5 left it uninitialised and the logits are wrong; call "
                "unmask.models.rotary.repair_rotary(model), or load the folder with unmask.load"
            )


def repair_rotary(model: Any) -> int:
    """Write the rotary frequencies that the config implies; returns how many buffers there are."""
    count = 0
    for _, buffer, expected in _buffers(model):
        buffer.copy_(expected.to(buffer))
        count += 1
    check_rotary(model)
    return count


def _buffers(model: nn.Module) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Every buffer that is not saved, with what it must hold; one that is not known is refused."""
    for owner, module in model.named_modules():
        for leaf in sorted(module._non_persistent_buffers_set):
            buffer = getattr(module, leaf)
            name = f"{owner}.{leaf}" if owner else leaf
            if buffer is None:
                continue
            if leaf not in KNOWN:
                raise ModelError(
                    f"{type(model).__name__}: transformers 5 leaves the buffer {name!r} "
                    "uninitialised, and what it should hold is not known here; load the folder "
                    "with unmask.load, or use transformers 4"
                )
            yield name, buffer, _frequencies(model, len(buffer))


def _frequencies(model: Any, count: int) -> Tensor:
    theta = _theta(model.config)
    return 1.0 / theta ** (torch.arange(0, 2 * count, 2, dtype=torch.float32) / (2 * count))


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


def _transformers_major() -> int:
    import transformers

    return int(transformers.__version__.split(".")[0])
