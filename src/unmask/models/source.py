"""How a model was loaded, so that it can be loaded again."""

from __future__ import annotations

from dataclasses import dataclass

from unmask.models.caches import Cached
from unmask.models.denoiser import Denoiser
from unmask.models.describe import Description, describe
from unmask.models.load import find_folder, load_described
from unmask.models.load_options import LoadOptions
from unmask.models.wrappers.guided import Guided


@dataclass(frozen=True)
class ModelSource:
    """A checkpoint and the options that change its predictions; traces keep it as JSON."""

    path: str  # a folder, a hub id, or `embedded`
    device: str = "cpu"
    dtype: str | None = None  # None: as stored
    mask_id: int | None = None  # None: as the files say
    block: int | None = None  # block width of a block-causal model; None: the config's
    cache: str = "none"
    guidance: float | None = None
    family: str | None = None  # None: as the config and the folder's name say
    quantize: str | None = None  # bits of the layers' weights; None: as `dtype`
    pack: bool | None = None  # None: weights are packed only where no bit changes

    def describe(self) -> Description:
        """Find the folder and read its config and tokenizer."""
        return describe(find_folder(self.path), self.mask_id, self.block, self.family)

    def load(self, description: Description | None = None) -> Denoiser:
        """Load the model with its cache and guidance.

        Give `description` if the folder is already read; it replaces `path`, `mask_id`, `block`
        and `family`.
        """
        options = LoadOptions(self.device, self.dtype, self.quantize, self.pack)
        loaded = load_described(description or self.describe(), options)
        model: Denoiser = loaded.model
        if self.cache != "none":
            model = Cached(loaded.model, self.cache)
        return model if self.guidance is None else Guided(model, self.guidance)
