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
    """The output of a forward, as the pipeline reads it."""

    logits: Tensor  # [B, W, V] of the last block, or of all positions if the model has no blocks


class PipelineModel(nn.Module):
    """A denoiser with the call signature of LLaDA2 in the pipeline.

    The pipeline's mask marks which positions exist; the released LLaDA2 code then lets every
    position attend to all others. A denoiser attends as its checkpoint was trained: up to the end
    of each position's own block. Masks that fill the last block are visible, as in `decode`.
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
        dtype: torch.dtype = getattr(self.model, "dtype", torch.float32)
        return dtype

    @torch.no_grad()
    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any) -> Logits:
        """Logits of the block at the end of `input_ids`; all blocks before it are filled."""
        rows, length = input_ids.shape
        block = self.spec.block or length
        if length % block:
            raise ModelError(
                f"{self.spec.name} attends in blocks of {block}, but the pipeline's input has "
                f"{length} positions; call the pipeline with block_length={block}"
            )
        if attention_mask is not None and _padded(attention_mask):
            raise ModelError(
                "the prompts are padded, and this model cannot mask padding out; give the "
                "pipeline prompts of equal length"
            )
        tokens = input_ids.cpu()
        masked = tokens == self.spec.mask_id
        whole = torch.full((rows,), length)
        keys = tuple(next(_KEYS) for _ in range(rows))  # new keys: caches keep nothing
        canvas = Canvas(tokens, whole, masked, ~masked, whole - block, whole, keys)
        each_row = torch.arange(rows).repeat_interleave(block)
        places = torch.arange(length - block, length).repeat(rows)
        logits = self.model.head(self.model.trunk(canvas), each_row, places)
        return Logits(logits.view(rows, block, -1))


def _padded(attention_mask: Tensor) -> bool:
    """Whether a masked position comes before a visible one."""
    visible = attention_mask.long()
    return not bool(visible[:, 0].all()) or bool((visible.diff(dim=-1) > 0).any())
