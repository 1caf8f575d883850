"""All examinations in order."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from unmask.decoding.options import DecodingOptions
from unmask.doctor.finding import Finding
from unmask.doctor.kernels import kernels_on
from unmask.doctor.machine import machine
from unmask.doctor.model import examined


def examine(model: str, options: DecodingOptions, device: torch.device) -> Iterator[Finding]:
    """Examine the machine, and a model on it; each finding as soon as it is there."""
    yield from machine(device)
    yield from kernels_on(device)
    yield from examined(model, options, device)
