"""A model under test: found, described and fingerprinted before its weights are loaded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch

from unmask.models.caches import POLICIES, Cached, check_cache
from unmask.models.denoiser import Denoiser
from unmask.models.describe import Description, describe
from unmask.models.fingerprint import fingerprint
from unmask.models.load import default_dtype, find_folder, load_described
from unmask.models.tokenizer import Tokenizer


@dataclass(frozen=True)
class Subject:
    """A checkpoint by the name that it was asked for."""

    name: str
    shape: Description

    @classmethod
    def of(cls, name: str) -> Subject:
        """Find a folder, a hub id or the model inside the package."""
        return cls(name, describe(find_folder(name)))

    @cached_property
    def weights(self) -> str:
        """A fingerprint of its files."""
        return fingerprint(self.shape.folder)

    @property
    def tokenizer(self) -> Tokenizer:
        return self.shape.tokenizer

    @property
    def family(self) -> str:
        """As presets call it: some have a wording of their own for a family."""
        return "dream" if "dream" in self.shape.family.name.lower() else ""

    def dtype(self, asked: str | None) -> str:
        """What the model computes in."""
        return asked or default_dtype(self.shape.folder) or "stored"

    def check(self, cache: str) -> None:
        """Raise if the model cannot use a cache."""
        if cache != "none":
            check_cache(self.shape.spec, POLICIES[cache]())

    def load(self, device: torch.device, dtype: str, cache: str) -> Denoiser:
        """The model, with its cache."""
        stored = None if dtype == "stored" else dtype
        loaded = load_described(self.shape, device=device, dtype=stored)
        return loaded.model if cache == "none" else Cached(loaded.model, cache)
