"""Which stored tensors fill a model of a family, and a stored head that the embedding replaces."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from unmask.errors import ModelError
from unmask.models.architecture import Architecture
from unmask.models.checkpoint import Checkpoint
from unmask.models.family import Family, Target, TensorSource
from unmask.models.transformer import Transformer


@dataclass(frozen=True)
class StoredModel:
    """A checkpoint with the tensors that a model takes from it."""

    checkpoint: Checkpoint
    family: Family
    plan: list[tuple[Target, TensorSource]]  # the embedding first
    spare: str | None  # a stored head, though the embedding is the head: some savers write it

    @classmethod
    def open(cls, folder: Path, family: Family, arch: Architecture) -> StoredModel:
        """Find the files; raises if the tensors have the names of another kind of model."""
        checkpoint = Checkpoint(folder)
        for name in family.foreign:
            if name in checkpoint.files:
                raise ModelError(
                    f"{folder}: the tensor {name!r} is that of an ordinary "
                    f"{family.architectures[0]}, not of family {family.name}, which names it "
                    f"otherwise; give a checkpoint such as {family.examples}"
                )
        return cls(checkpoint, family, list(family.tensors(arch)), _spare(checkpoint, family, arch))

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the embedding; the files may mix several."""
        return self.checkpoint.stored_dtype(self.plan[0][1].name)

    def check(self, module: nn.Module) -> None:
        """Check names and shapes by the headers of the files, as `fill` does."""
        self.checkpoint.check(module, self.plan, self.spare)

    def fill(
        self, module: nn.Module, dtype: torch.dtype, device_of: dict[str, torch.device]
    ) -> None:
        """Load every parameter of a module on the meta device."""
        self.checkpoint.fill(module, self.plan, dtype, device_of, self.spare)

    def warn_of_spare(self) -> None:
        """Warn if the stored head differs from the embedding, which is used in its place.

        Not an error: either may be right. One key of config.json takes the stored head; to take the
        embedding after a refusal, one would have to rewrite the weights.
        """
        embedding = self.plan[0][1].name
        if self.spare is None or self.checkpoint.same(embedding, self.spare):
            return
        key = "weight_tying" if self.family.name == "llada" else "tie_word_embeddings"
        separate = self.family.network is Transformer
        warnings.warn(
            f"{self.checkpoint.folder}: by config.json the head is the embedding, but the stored "
            f"{self.spare!r} differs from it; the embedding is used, as in transformers 4; "
            + (
                f"for the stored head set {key} to false in config.json"
                if separate
                else f"a head of its own is not supported for {self.family.name}"
            ),
            stacklevel=4,
        )


def _spare(checkpoint: Checkpoint, family: Family, arch: Architecture) -> str | None:
    """The stored name of a head that the embedding replaces."""
    if not arch.tied:
        return None
    whole = family.tensors(replace(arch, tied=False))
    heads = [source.name for target, source in whole if target.name == "head.weight"]
    return next((stored for stored in map(checkpoint.find, heads) if stored), None)
