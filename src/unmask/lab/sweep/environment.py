"""The environment of a run: versions, commit and hardware."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import torch

from unmask import __version__


def environment(device: torch.device, batch_size: int) -> dict[str, Any]:
    """For the record of every run."""
    return {
        "unmask": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": platform.platform(),
        "device": device_name(device),
        "threads": torch.get_num_threads(),
        "batch_size": batch_size,
    }


def device_name(device: torch.device) -> str:
    """The name of the graphics card or the processor."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


@cache
def commit() -> str | None:
    """The commit of this source, with a + if files are changed; None for an installed package."""
    here = Path(__file__).resolve().parent
    try:
        inside = _git(here, "ls-files", "--error-unmatch", __file__)
        if not inside:
            return None
        changed = _git(here, "status", "--porcelain", "--untracked-files=no")
        return _git(here, "rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ("git", *arguments), cwd=folder, capture_output=True, text=True, timeout=10, check=True
    )
    return done.stdout.strip()
