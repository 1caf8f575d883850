"""Lengths of an answer that suit a checkpoint, where the options leave them open."""

from __future__ import annotations

from dataclasses import replace

from unmask import embedded
from unmask.decoding.options import DecodingOptions
from unmask.decoding.resolve import MORE
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
