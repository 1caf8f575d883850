"""One of our models as the `model` of diffusers' LLaDA2Pipeline."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unmask.errors import ModelError
from unmask.models.denoiser import Canvas, Denoiser

_KEYS = itertools.count()


@dataclass(frozen=True)
class Logits:
    """What the pipeline reads of a forward."""

    logits: Tensor  # [B, W, V] of the last block; of a model without blocks, of all positions


class PipelineModel(nn.Module):
    """A denoiser that is called as the pipeline calls LLaDA2.

    The pipeline's mask says which positions are there, not who sees whom, and the released LLaDA2
    code then lets all see all. A denoiser attends as its checkpoint was trained: up to the end
    of one's own block. What fills up the last block is seen, as in unmask's own decode.
    """

    def __init__(self, model: Denoiser) -> None:
        super().__init__()
        self.model = model
        self.spec = model.spec

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def dtype(self) -> torch.dtype:
        found: torch.dtype = getattr(self.model, "dtype", torch.float32)
        return found

    @torch.no_grad()
    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any) -> Logits:
        """Logits of the block at the end of `input_ids`, all blocks before it being known."""
        rows, length = input_ids.shape
        block = self.spec.block or length
        if length % block:
            raise ModelError(
                f"{self.spec.name} attends in blocks of {block}, and the pipeline's end at "
                f"{length}; call it with block_length={block}"
            )
        if attention_mask is not None and _padded(attention_mask):
            raise ModelError(
                "the rows are padded to one length, which this model cannot leave out; give the "
                "pipeline prompts of one length"
            )
        tokens = input_ids.cpu()
        places = torch.arange(length - block, length)
        hidden = self.model.trunk(self._canvas(tokens, block))
        logits = self.model.head(hidden, *_cells(rows, places))
        return Logits(logits.view(rows, block, -1))

    def _canvas(self, tokens: Tensor, block: int) -> Canvas:
        rows, length = tokens.shape
        masked = tokens == self.spec.mask_id
        whole = torch.full((rows,), length)
        keys = tuple(next(_KEYS) for _ in range(rows))  # never known again: caches keep nothing
        return Canvas(tokens, whole, masked, ~masked, whole - block, whole, keys)


def _padded(attention_mask: Tensor) -> bool:
    """Whether something is left out before something that is seen."""
    seen = attention_mask.long()
    return not bool(seen[:, 0].all()) or bool((seen.diff(dim=-1) > 0).any())


def _cells(rows: int, places: Tensor) -> tuple[Tensor, Tensor]:
    """All these places of all rows."""
    return torch.arange(rows).repeat_interleave(len(places)), places.repeat(rows)
