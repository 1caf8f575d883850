"""A loaded checkpoint as a denoiser."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unmask.models.architecture import Architecture
from unmask.models.base import Canvas, Hidden, ModelSpec
from unmask.models.transformer import KeyValues, Transformer, block_causal


@dataclass(frozen=True)
class Pretrained:
    """A transformer with its special tokens; attention is full, or block-causal."""

    module: Transformer
    spec: ModelSpec

    @property
    def arch(self) -> Architecture:
        return self.module.arch

    @property
    def device(self) -> torch.device:
        return self.module.embed.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.module.embed.weight.dtype

    def trunk(self, canvas: Canvas) -> Hidden:
        """One forward; of a block-causal model up to the open blocks: nothing sees further."""
        block = self.spec.block
        if block is None:
            mask = self.attention_mask(canvas, canvas.tokens.shape[-1])
            return Hidden(self.module(canvas.tokens, mask=mask))
        width = int(canvas.stop.max())
        hidden = self.module(canvas.tokens[:, :width], mask=self.attention_mask(canvas, width))
        place = torch.arange(canvas.tokens.shape[-1], device=self.device)
        return Hidden(hidden, fresh=place < canvas.stop[:, None])

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        """Logits of the asked cells; a shifted model predicts token i from its output at i - 1."""
        source = (positions - 1).clamp_min(0) if self.arch.shift else positions
        return self.module.logits(hidden.states[rows, source])

    def attention_mask(self, canvas: Canvas, width: int) -> Tensor | None:
        """Who may look at whom: None where everybody sees everything: [B, 1, Q or 1, K]."""
        place = torch.arange(width, device=self.device)[None]
        real = place < canvas.lengths[:, None]  # [B, K]
        if self.spec.block is not None:
            return (block_causal(place, place, self.spec.block) & real[:, None])[:, None]
        return None if bool(real.all()) else real[:, None, None]

    def forward(
        self, tokens: Tensor, positions: Tensor, mask: Tensor | None, cache: KeyValues
    ) -> Tensor:
        """Hidden states of some positions only, the others' keys and values from a cache."""
        hidden: Tensor = self.module(tokens, positions, mask, cache)
        return hidden

    def with_block(self, block: int) -> Pretrained:
        """The same weights, attending in blocks of another width."""
        return Pretrained(self.module, replace(self.spec, block=block))
