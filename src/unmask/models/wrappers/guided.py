"""Classifier-free guidance: runs the model with and without the prompt."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from unmask.errors import ModelError, shown
from unmask.models.denoiser import Canvas, Denoiser, Hidden, check_denoiser


def check_scale(scale: float) -> None:
    """Raise unless the guidance scale is >= 0 and finite."""
    if not isinstance(scale, int | float) or not 0 <= scale < float("inf"):
        raise ModelError(f"the guidance scale must be >= 0 and finite, got {shown(scale)}")


class Guided:
    """Logits un + (scale + 1) (cond - un), where `un` has the prompt masked out.

    Each forward has twice the rows and counts as one. This is LLaDA's `cfg_scale`.
    """

    def __init__(self, model: Denoiser, scale: float) -> None:
        check_scale(scale)
        check_denoiser(model)
        self.model, self.device = model, model.device
        self.spec = replace(model.spec, shadows=False)
        self.scale = scale

    def trunk(self, canvas: Canvas) -> Hidden:
        """One forward of the rows, followed by the same rows without their prompts."""
        blind = canvas.tokens.masked_fill(canvas.given, self.spec.mask_id)
        both = Canvas(
            tokens=torch.cat([canvas.tokens, blind]),
            lengths=canvas.lengths.repeat(2),
            masked=canvas.masked.repeat(2, 1),  # a hidden prompt is not filled
            given=canvas.given.repeat(2, 1),
            start=canvas.start.repeat(2),
            stop=canvas.stop.repeat(2),
            keys=(*canvas.keys, *(~key for key in canvas.keys)),
            read=None if canvas.read is None else canvas.read.repeat(2, 1),
        )
        hidden = self.model.trunk(both)
        rows = len(canvas.tokens)
        return Hidden((hidden, rows), None if hidden.fresh is None else hidden.fresh[:rows])

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        inner, count = hidden.states
        conditional = self.model.head(inner, rows, positions)
        unconditional = self.model.head(inner, rows + count, positions)
        guided = unconditional + (self.scale + 1) * (conditional - unconditional)
        # A token with logit -inf without the prompt gives no direction, so it keeps `conditional`.
        return torch.where(unconditional == -torch.inf, conditional, guided)
