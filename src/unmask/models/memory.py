"""How much memory a device has, and weights need."""

from __future__ import annotations

import os
from pathlib import Path

import torch

# Bytes of a weight at each precision; 4 bits have a scale in bfloat16 for every 32 weights.
WIDTHS = {"float32": 4.0, "bfloat16": 2.0, "int8": 1.0, "int4": 0.5625}


def weight_bytes(inner: int, outer: int, precision: str) -> int:
    """The bytes of weights in the layers and outside; embedding and head are never quantised."""
    width = WIDTHS[precision]
    return int(inner * width + outer * max(width, WIDTHS["bfloat16"]))


# What a container may use and uses, in both versions of Linux's control groups.
GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


def memory(device: torch.device) -> tuple[int, int]:
    """The free and the whole memory of a device, in bytes; a container's own limits count."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)
    free, total = _of_machine()
    for limit, used in GROUPS:
        most, taken = _number(limit), _number(used)
        if most is not None and taken is not None and most < total:
            free, total = max(0, min(free, most - taken)), most
    return free, total


def _of_machine() -> tuple[int, int]:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return total, total
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
    return sizes.get("MemAvailable", total), total


def _number(file: str) -> int | None:
    """The number in a file; None if there is none, as in a group without a limit."""
    try:
        return int(Path(file).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def free_memory(device: torch.device) -> int:
    """The free memory of a device, in bytes."""
    return memory(device)[0]
