"""A model that a program already holds, for a session."""

from __future__ import annotations

from typing import Any

from unmask.decoding.options import DecodingOptions
from unmask.errors import RequestError
from unmask.models.denoiser import Denoiser
from unmask.models.load import Loaded
from unmask.models.tokenizer import Tokenizer
from unmask.models.transformers_model import wrap


def in_memory(model: Any, tokenizer: Any, options: DecodingOptions) -> tuple[Denoiser, Tokenizer]:
    """A denoiser and our tokenizer, from what a program holds."""
    if options.quantize is not None:
        raise RequestError(
            "quantize is for loading a checkpoint; this model is in memory, so leave it out"
        )
    if isinstance(model, Loaded):
        return model.model, tokenizer or model.tokenizer
    if tokenizer is None:
        raise RequestError("a model in memory needs its tokenizer: Session(model, tokenizer)")
    denoiser = wrap(model, tokenizer, mask_id=options.mask_id)
    if not isinstance(tokenizer, Tokenizer):
        tokenizer = Tokenizer.of_transformers(tokenizer)
    return denoiser, tokenizer
