"""A model with noise on its logits, new for every canvas and larger while more is masked."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from unmask.errors import ModelError
from unmask.models.denoiser import Canvas, Denoiser, Hidden, ship


class Noisy:
    """Adds Gaussian noise to the logits, drawn for each canvas, times the masked share.

    It imitates the short-lived over-confidence that SWD is made for: a prediction that looks
    certain in one step and is gone in the next. The same canvas always gets the same noise.
    """

    def __init__(self, model: Denoiser, scale: float, seed: int = 0) -> None:
        if not scale >= 0:
            raise ModelError(f"the noise scale must be >= 0, got {scale}")
        self.model, self.spec, self.device = model, model.spec, model.device
        self.scale = scale
        self.seed = seed

    def trunk(self, canvas: Canvas) -> Hidden:
        hidden = self.model.trunk(canvas)
        rows = [
            tokens[:length]
            for tokens, length in zip(canvas.tokens.tolist(), canvas.lengths.tolist(), strict=True)
        ]
        shadow = None if hidden.shadow is None else Hidden((hidden.shadow, rows))
        return Hidden((hidden, rows), fresh=hidden.fresh, shadow=shadow)

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        inner, contexts = hidden.states
        logits = self.model.head(inner, rows, positions)
        for row in sorted(set(rows.tolist())):
            mine = (rows == row).nonzero()[:, 0]
            noise = self._noise(contexts[row], logits.shape[-1])[positions[mine]]
            logits[ship(mine, logits.device)] += noise.to(logits)
        return logits

    def _noise(self, context: list[int], vocabulary: int) -> Tensor:
        """The noise of a whole canvas, from a hash of its tokens: [L, V]."""
        digest = hashlib.sha256(repr((self.seed, context)).encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
        masked = context.count(self.spec.mask_id) / len(context)
        shape = (len(context), vocabulary)
        return self.scale * masked * torch.randn(shape, generator=generator)
