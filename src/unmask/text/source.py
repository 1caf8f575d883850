"""Source: how a model was loaded, so that it can be loaded again."""

from __future__ import annotations

from dataclasses import dataclass

from unmask.models.caches import Cached
from unmask.models.denoiser import Denoiser
from unmask.models.load import find_folder, load
from unmask.models.wrappers.guided import Guided


@dataclass(frozen=True)
class Source:
    """A checkpoint with everything that changes what it says; kept in traces as JSON."""

    path: str  # a folder, a hub id, or the model inside the package
    device: str = "cpu"
    dtype: str | None = None  # None: as stored
    mask_id: int | None = None  # None: as the files say
    block: int | None = None  # of a block-causal model, where it is not its own
    cache: str = "none"
    guidance: float | None = None

    def load(self) -> Denoiser:
        """The model with its cache and guidance."""
        loaded = load(
            find_folder(self.path),
            device=self.device,
            dtype=self.dtype,
            mask_id=self.mask_id,
            block=self.block,
        )
        model: Denoiser = loaded.model
        if self.cache != "none":
            model = Cached(loaded.model, self.cache)
        return model if self.guidance is None else Guided(model, self.guidance)
