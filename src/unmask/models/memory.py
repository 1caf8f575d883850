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


# What a container may use, uses, and could free of it at once (pages of files), in both versions of
# Linux's control groups.
GROUPS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    (
        "/sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)
UNKNOWN = 1 << 62  # bytes, where the system does not tell


def memory(device: torch.device) -> tuple[int, int]:
    """The free and the whole memory of a device, in bytes; a container's own limits count."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)
    free, total = _of_machine()
    for group in GROUPS:
        folder = Path(group[0])
        most, taken = (_numbers(folder / name).get("") for name in group[1:3])
        if most is not None and taken is not None and most < total:
            taken -= _numbers(folder / "memory.stat").get(group[3], 0)
            free, total = max(0, min(free, most - taken)), most
    return free, total


def _of_machine() -> tuple[int, int]:
    if not hasattr(os, "sysconf"):  # Windows
        return UNKNOWN, UNKNOWN
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    available = _numbers(Path("/proc/meminfo")).get("MemAvailable:")
    return total if available is None else available * 1024, total


def _numbers(file: Path) -> dict[str, int]:
    """The numbers in a file by the words before them; nothing of a file that cannot be read."""
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    words = (line.removesuffix(" kB").split() for line in lines if line.strip())
    return {" ".join(before): int(last) for *before, last in words if last.isdigit()}


def free_memory(device: torch.device) -> int:
    """The free memory of a device, in bytes."""
    return memory(device)[0]
