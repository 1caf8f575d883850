"""Lengths that suit a checkpoint: of an answer if it is left open, and the most of a canvas."""

from __future__ import annotations

from dataclasses import replace

from unmask import embedded
from unmask.decoding.options import DecodingOptions, Option
from unmask.decoding.request import Request
from unmask.decoding.resolve import MORE
from unmask.errors import RequestError
from unmask.models.denoiser import ModelSpec
from unmask.models.describe import Description


def sized(options: DecodingOptions, checkpoint: Description | None) -> DecodingOptions:
    """The same options with lengths that suit the checkpoint where they are left open.

    The embedded model writes fewer tokens than others, and a growing canvas takes at most half the
    context of a checkpoint.
    """
    if checkpoint is None:
        return options
    inside = checkpoint.folder == embedded.FOLDER
    if (options.length or options.defaults.length) == "auto":
        usual = MORE * (embedded.LENGTH if inside else 256)
        half = (checkpoint.context or 2 * usual) // 2  # the other half is for the prompt
        return replace(options, longest=options.longest or min(usual, half))
    if inside and options.length is None:
        return replace(options, length=embedded.LENGTH)
    return options


def context_of(checkpoint: Description | None, given: int | None) -> int | None:
    """Most positions of prompt and answer; None if nothing limits them.

    `given` comes before what the checkpoint says, but learned positions cannot be exceeded.
    """
    learned = learned_positions(checkpoint)
    if given is None:
        limits = (learned, None if checkpoint is None else checkpoint.context)
        return min((limit for limit in limits if limit is not None), default=None)
    context: int = Option("whole", "", "", least=1).check("context", given)
    if checkpoint is not None and learned is not None and context > learned:
        raise RequestError(
            f"context must be at most {learned}, got {context}: {checkpoint.spec.name} has learned "
            "that many positions"
        )
    return context


def learned_positions(checkpoint: Description | None) -> int | None:
    """The positions that a model has learned; None if they are computed, so without end."""
    return None if checkpoint is None else checkpoint.arch.positions


def too_long(request: Request, context: int | None, spec: ModelSpec) -> str:
    """Says that a canvas is longer than the model's context; empty if it is not."""
    size = request.positions
    if context is None or size <= context:
        return ""
    return f"{size} positions are more than the {context} that {spec.name} was made for"


def way_out(request: Request, checkpoint: Description | None) -> str:
    """What to do about a canvas that is too long; another context, if the model can have it."""
    learned, advice = learned_positions(checkpoint), "shorten the prompt or the answer"
    if learned is None or request.positions <= learned:
        advice += f", or set context to {request.positions}"
    return advice
