"""A model that a program already holds, for a session."""

from __future__ import annotations

from typing import Any

from unmask.decoding.options import LOADING, DecodingOptions
from unmask.errors import RequestError
from unmask.models.denoiser import Denoiser
from unmask.models.describe import Description
from unmask.models.load import Loaded
from unmask.models.tokenizer import Tokenizer
from unmask.models.transformers_model import wrap


def in_memory(
    model: Any, tokenizer: Any, options: DecodingOptions
) -> tuple[Denoiser, Tokenizer, Description | None]:
    """A denoiser, our tokenizer, and what its folder says of it if that is known."""
    mask_id = options.mask_id
    for name in LOADING:
        if name != "mask_id" and getattr(options, name) is not None:
            raise RequestError(
                f"{name} is for loading a checkpoint; this model is in memory, so leave it out"
            )
    described = model.description if isinstance(model, Loaded) else None
    if isinstance(model, Loaded):
        model, tokenizer = model.model, tokenizer or model.tokenizer
    if tokenizer is None:
        raise RequestError("a model in memory needs its tokenizer: Session(model, tokenizer)")
    denoiser = wrap(model, tokenizer, mask_id=mask_id)
    if mask_id not in (None, denoiser.spec.mask_id):
        raise RequestError(
            f"the mask token of {denoiser.spec.name} is {denoiser.spec.mask_id}, as it was "
            f"loaded, not {mask_id}; load it with that mask_id"
        )
    if not isinstance(tokenizer, Tokenizer):
        tokenizer = Tokenizer.of_transformers(tokenizer)
    return denoiser, tokenizer, described
