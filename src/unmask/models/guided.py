"""Classifier-free guidance as a wrapper: the model with and without the prompt."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from unmask.errors import ModelError
from unmask.models.base import Canvas, Denoiser, Hidden, ModelSpec


class Guided:
    """Logits un + (scale + 1) (cond - un), `un` being the model with the prompt masked out.

    Counts as one forward per step, though it costs two; LLaDA's `cfg_scale`.
    """

    def __init__(self, model: Denoiser, scale: float) -> None:
        if not 0 <= scale < float("inf"):
            raise ModelError(f"the guidance scale must be >= 0 and finite, got {scale}")
        self.model = model
        self.scale = scale

    @property
    def spec(self) -> ModelSpec:
        return self.model.spec

    @property
    def device(self) -> torch.device:
        return self.model.device

    def trunk(self, canvas: Canvas) -> Hidden:
        blind = canvas.tokens.masked_fill(canvas.given, self.spec.mask_id)
        unconditional = replace(
            canvas,
            tokens=blind,
            masked=canvas.masked | canvas.given,
            keys=tuple(~key for key in canvas.keys),
        )
        seen, unseen = self.model.trunk(canvas), self.model.trunk(unconditional)
        return Hidden((seen, unseen), fresh=seen.fresh)

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        conditional, unconditional = (
            self.model.head(part, rows, positions) for part in hidden.states
        )
        guided = unconditional + (self.scale + 1) * (conditional - unconditional)
        # What is impossible without the prompt gives no direction to push along.
        return torch.where(unconditional == -torch.inf, conditional, guided)
