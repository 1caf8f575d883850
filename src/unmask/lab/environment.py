"""What a result came from: versions, commit, hardware, and the checkpoint's fingerprint."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import torch

from unmask import __version__

_WHOLE = 64 * 2**20  # bytes: smaller files are hashed from end to end
_SAMPLES, _SAMPLE = 64, 2**18  # of larger files: so many pieces of so many bytes
_TEXTS = ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
          "vocab.json", "merges.txt", "generation_config.json")  # fmt: skip


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
    """The graphics card, or the processor."""
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
    """The commit of the source that runs, + where files differ from it; None when installed."""
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
    found = subprocess.run(
        ("git", *arguments), cwd=folder, capture_output=True, text=True, timeout=10, check=True
    )
    return found.stdout.strip()


def fingerprint(folder: Path) -> str:
    """Of a checkpoint: its texts, and its weights whole or, where they are large, in samples."""
    digest = hashlib.sha256()
    files = [folder / name for name in _TEXTS if (folder / name).is_file()]
    for file in (*files, *sorted(folder.glob("*.safetensors"))):
        digest.update(f"{file.name} {file.stat().st_size}\0".encode())
        _take(digest, file)
    return digest.hexdigest()[:16]


def _take(digest: Any, file: Path) -> None:
    size = file.stat().st_size
    with file.open("rb") as stream:
        if size <= _WHOLE:
            digest.update(stream.read())
            return
        for number in range(_SAMPLES):
            stream.seek((size - _SAMPLE) * number // (_SAMPLES - 1))
            digest.update(stream.read(_SAMPLE))
