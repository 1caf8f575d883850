"""How much memory a device has."""

from __future__ import annotations

import os
from pathlib import Path

import torch


def memory(device: torch.device) -> tuple[int, int]:
    """The free and the whole memory of a device, in bytes."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return total, total
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
    return sizes.get("MemAvailable", total), total


def free_memory(device: torch.device) -> int:
    """The free memory of a device, in bytes."""
    return memory(device)[0]
