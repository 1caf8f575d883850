"""What a session makes of the model that it is given: lengths that suit it, its tokenizer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from unmask import embedded
from unmask.decoding.options import DecodingOptions
from unmask.decoding.resolve import MORE
from unmask.errors import RequestError
from unmask.models.denoiser import Denoiser
from unmask.models.describe import Description
from unmask.models.load import Loaded
from unmask.models.tokenizer import Tokenizer
from unmask.models.transformers_model import wrap


def sized(options: DecodingOptions, checkpoint: Description | None) -> DecodingOptions:
    """The same options with lengths that suit the checkpoint where they are left open.

    The embedded model writes fewer tokens than others, and a growing canvas takes at most half the
    context of a checkpoint.
    """
    if checkpoint is None:
        return options
    inside = checkpoint.folder == embedded.FOLDER
    if "auto" in (options.length, options.length or options.defaults.length):
        usual = MORE * (embedded.LENGTH if inside else 256)
        half = (checkpoint.context or 2 * usual) // 2  # the other half is for the prompt
        return replace(options, longest=options.longest or min(usual, half))
    if inside and options.length is None:
        return replace(options, length=embedded.LENGTH)
    return options


def in_memory(model: Any, tokenizer: Any, options: DecodingOptions) -> tuple[Denoiser, Tokenizer]:
    """A denoiser and our tokenizer, from what a program holds."""
    if isinstance(model, Loaded):
        return model.model, tokenizer or model.tokenizer
    if tokenizer is None:
        raise RequestError("a model in memory needs its tokenizer: Session(model, tokenizer)")
    denoiser = wrap(model, tokenizer, mask_id=options.mask_id)
    if not isinstance(tokenizer, Tokenizer):
        tokenizer = Tokenizer.of_transformers(tokenizer)
    return denoiser, tokenizer
