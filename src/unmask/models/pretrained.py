"""A loaded checkpoint as a denoiser."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from unmask.models.architecture import Architecture
from unmask.models.denoiser import Canvas, Hidden, ModelSpec, cells, ship
from unmask.models.function import by_length
from unmask.models.quantized import QuantizedLinear
from unmask.models.transformer import Transformer, block_causal

CACHED_BYTES = 8 << 20  # size of weights that fit into a processor's cache
CACHED_PLACES = 512  # tokens whose states fit beside them


@dataclass(frozen=True)
class Pretrained:
    """A transformer with its special tokens; attention is full or block-causal.

    Rows of unequal length share a forward. The shorter rows are padded, and the padding is hidden
    from attention. The result is right up to rounding, which in bfloat16 may change a close
    decision. With `exact`, rows of each length get a separate forward without padding. If the
    weights fit into a processor's cache, a large batch is split into parts that fit too, with
    rows of similar length together.
    """

    module: Transformer
    spec: ModelSpec
    exact: bool = False

    @property
    def arch(self) -> Architecture:
        return self.module.arch

    @property
    def device(self) -> torch.device:
        return self.module.embed.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.module.embed.weight.dtype

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        small = (part for part in self.module.modules() if isinstance(part, QuantizedLinear))
        quantized = sum(linear.in_features * linear.out_features for linear in small)
        return quantized + sum(parameter.numel() for parameter in self.module.parameters())

    def trunk(self, canvas: Canvas) -> Hidden:
        """One forward; in a block-causal model it stops after the active block."""
        blockwise = self.spec.block is not None
        seen = torch.minimum(canvas.stop, canvas.lengths) if blockwise else canvas.lengths
        if self.exact:
            states = by_length(canvas.tokens, seen, self._unpadded)
        elif self._in_cache and len(seen) * int(seen.max()) > CACHED_PLACES:
            states = self._in_parts(canvas, seen)
        else:
            states = self._padded(canvas.tokens[:, : int(seen.max())], canvas.lengths)
        if not blockwise:
            return Hidden(states)
        return Hidden(states, fresh=torch.arange(canvas.tokens.shape[-1]) < seen[:, None])

    @cached_property
    def _in_cache(self) -> bool:
        """Whether the weights fit into a processor's cache."""
        small = self.parameters * self.dtype.itemsize <= CACHED_BYTES
        return small and self.device.type == "cpu"

    def _padded(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Hidden states of all rows in one forward: [b, l] -> [b, l, D]."""
        mask = self.attention_mask(lengths, tokens.shape[-1])
        hidden: Tensor = self.module(ship(tokens, self.device), mask=mask)
        return hidden

    def _in_parts(self, canvas: Canvas, seen: Tensor) -> Tensor:
        """Hidden states of all rows in several forwards, the longest rows first."""
        states = torch.zeros(len(seen), int(seen.max()), self.arch.hidden, dtype=self.dtype)
        order = seen.argsort(descending=True, stable=True)
        while len(order):
            width = int(seen[order[0]])
            count = max(1, CACHED_PLACES // width)
            rows, order = order[:count], order[count:]
            states[rows, :width] = self._padded(canvas.tokens[rows, :width], canvas.lengths[rows])
        return states

    def _unpadded(self, tokens: Tensor) -> Tensor:
        """Hidden states of rows without padding: [b, l] -> [b, l, D]."""
        return self._padded(tokens, torch.tensor([tokens.shape[-1]]))

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        """Logits of the requested cells; a shifted model predicts token i at position i - 1."""
        return self.module.logits(cells(hidden.states, rows, positions, self.arch.shift))

    def attention_mask(self, lengths: Tensor, width: int) -> Tensor | None:
        """True where a query may attend to a key, [B, 1, Q or 1, K]; None if everywhere."""
        if self.spec.block is None and int(lengths.min()) >= width:
            return None
        place = torch.arange(width)[None]
        real = place < lengths[:, None]  # [B, K]
        if self.spec.block is None:
            return ship(real[:, None, None], self.device)
        mask = block_causal(place, place, self.spec.block) & real[:, None]
        return ship(mask[:, None], self.device)

    def with_block(self, block: int) -> Pretrained:
        """The same weights with another block width."""
        return replace(self, spec=replace(self.spec, block=block))
