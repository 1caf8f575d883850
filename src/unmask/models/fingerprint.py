"""Fingerprints of checkpoints and of anything that JSON can hold."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

_WHOLE = 64 * 2**20  # bytes; files up to this size are hashed whole
_SAMPLES, _SAMPLE = 64, 2**18  # of larger files: the number of pieces and the bytes of each
_TEXTS = ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
          "vocab.json", "merges.txt", "generation_config.json")  # fmt: skip


def fingerprint(folder: Path) -> str:
    """A hash of the config and tokenizer files and of the weights (large files: of samples)."""
    digest = hashlib.sha256()
    files = [folder / name for name in _TEXTS if (folder / name).is_file()]
    for file in (*files, *sorted(folder.glob("*.safetensors"))):
        digest.update(f"{file.name} {file.stat().st_size}\0".encode())
        _add(digest, file)
    return digest.hexdigest()[:16]


def _add(digest: Any, file: Path) -> None:
    size = file.stat().st_size
    with file.open("rb") as stream:
        if size <= _WHOLE:
            digest.update(stream.read())
            return
        for number in range(_SAMPLES):
            stream.seek((size - _SAMPLE) * number // (_SAMPLES - 1))
            digest.update(stream.read(_SAMPLE))


def sha_of(value: Any) -> str:
    """A short fingerprint of anything that JSON can hold."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
