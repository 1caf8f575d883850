"""How the weights of a checkpoint are loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from unmask.errors import ModelError, shown

_SWITCHES = ("pack", "exact", "compile")
_ALONE = ("quantize", "pack", "compile", "device_map")  # of these only the last two work together


@dataclass(frozen=True)
class LoadOptions:
    """Where and in which form weights are kept; `load` says what each option does."""

    device: str | torch.device | None = None
    dtype: str | torch.dtype | None = None
    quantize: str | None = None
    pack: bool | None = None
    exact: bool | None = None
    compile: bool = False
    device_map: str | dict[str, Any] | None = None

    def __post_init__(self) -> None:
        for name in _SWITCHES:
            value = getattr(self, name)
            if not isinstance(value, bool | None):  # a text such as "no" would count as True
                raise ModelError(f"{name} must be True or False, got {shown(value)}")
        given = [name for name in _ALONE if getattr(self, name) not in (None, False)]
        if len(given) > 1 and given != ["compile", "device_map"]:
            raise ModelError(f"{given[0]} and {given[1]} do not work together; give one of them")
