"""A loaded checkpoint as a denoiser."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from torch import Tensor

from unmask.models.architecture import Architecture
from unmask.models.denoiser import Canvas, Hidden, ModelSpec, cells, read_at, ship
from unmask.models.family import Network
from unmask.models.function import by_length
from unmask.models.layers import ConvertedLinear
from unmask.models.products import several_rows
from unmask.models.transformer import block_causal

CACHED_BYTES = 8 << 20  # size of weights that fit into a processor's cache
PANEL = 16  # places: a product of a few rows, or of a few more, may be rounded in another way
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

    module: Network
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
        parts = (part for part in self.module.modules() if isinstance(part, ConvertedLinear))
        others = (part for part in parts if part.weight is None)
        converted = sum(linear.in_features * linear.out_features for linear in others)
        return converted + sum(parameter.numel() for parameter in self.module.parameters())

    def trunk(self, canvas: Canvas) -> Hidden:
        """One forward; in a block-causal model it stops after the last block that is read."""
        if canvas.shadow:
            return self._with_shadow(canvas)
        seen, offset = self.reach(canvas), self.offset(canvas)
        if self.exact:
            states = self._unpadded(canvas, seen, offset)
        elif self._in_cache and len(seen) * int(seen.max()) > CACHED_PLACES:
            states = self._in_parts(canvas, seen, offset)
        else:
            tokens, asked = canvas.tokens[:, : int(seen.max())], self._asked(canvas)
            states = self._padded(tokens, canvas.lengths, offset, asked)
        if self.spec.block is None:
            return Hidden(states)
        place = torch.arange(canvas.tokens.shape[-1])
        return Hidden(states, fresh=read_at(place, self.arch.shift) < seen[:, None])

    def offset(self, canvas: Canvas) -> Tensor:
        """What is added to a position before blocks are counted from 0: [B].

        Where blocks count from the prompt's end, one begins at the first position of the answer.
        """
        if self.spec.block is None or not self.spec.from_prompt_end:
            return torch.zeros_like(canvas.lengths)
        return -(~canvas.given).int().argmax(-1) % self.spec.block

    def reach(self, canvas: Canvas) -> Tensor:
        """One past the last position that a forward must compute: [B].

        In a block-causal model it is the end of the block with the last output that is read.
        """
        if self.spec.block is None:
            return canvas.lengths
        block, offset = self.spec.block, self.offset(canvas)
        last = read_at(canvas.stop - 1, self.arch.shift) + offset
        return torch.minimum((last // block + 1) * block - offset, canvas.lengths)

    def _with_shadow(self, canvas: Canvas) -> Hidden:
        """One forward over the canvas and a second set of masks for the windows' positions."""
        length, width = canvas.tokens.shape[-1], int((canvas.stop - canvas.start).max())
        place, extra = torch.arange(length), canvas.start[:, None] + torch.arange(width)
        masks = torch.full_like(extra, self.spec.mask_id)
        places = torch.cat([place.expand(canvas.tokens.shape), extra], -1)  # [B, K]
        there = extra < canvas.stop[:, None]  # [B, W]
        seen = (place < canvas.lengths[:, None])[:, None].expand(-1, length + width, -1)
        others = torch.cat([seen[:, :length], seen[:, length:] & (place != extra[..., None])], 1)
        own = there[:, None].expand(-1, length + width, -1).clone()
        own[:, :length] = False
        mask = ship(torch.cat([others, own], -1)[:, None], self.device)  # [B, 1, K, K]
        tokens = ship(torch.cat([canvas.tokens, masks], -1), self.device)
        states = self.module(tokens, ship(places, self.device), mask)
        shadow = torch.zeros_like(states[:, :length])
        rows, columns = there.nonzero(as_tuple=True)
        at = (ship(rows, self.device), ship(extra[rows, columns], self.device))
        shadow[at] = states[at[0], ship(length + columns, self.device)]
        return Hidden(states[:, :length], shadow=Hidden(shadow))

    @cached_property
    def _in_cache(self) -> bool:
        """Whether the weights fit into a processor's cache."""
        small = self.parameters * self.dtype.itemsize <= CACHED_BYTES
        return small and self.device.type == "cpu"

    def _asked(self, canvas: Canvas, rows: Tensor | None = None) -> Tensor | None:
        """The places whose states one of the rows needs, ascending: [N]; None: all of them."""
        if canvas.read is None or "forward" in vars(self.module):  # compiled, for each shape anew
            return None
        read = canvas.read if rows is None else canvas.read[rows]
        places = read_at(read.any(0).nonzero()[:, 0], self.arch.shift)  # ascending
        return torch.unique_consecutive(places) if self.arch.shift else places

    def _padded(
        self, tokens: Tensor, lengths: Tensor, offset: Tensor, asked: Tensor | None
    ) -> Tensor:
        """Hidden states of all rows in one forward: [b, l] -> [b, l, D]; NaN where none asked."""
        width = tokens.shape[-1]
        mask = self.attention_mask(lengths, width, offset)
        asked = None if asked is None else whole_panels(asked[asked < width], width)
        if asked is None or len(asked) == width:
            hidden: Tensor = self.module(ship(tokens, self.device), mask=mask)
            return hidden
        asked = ship(asked, self.device)
        some: Tensor = self.module(ship(tokens, self.device), mask=mask, asked=asked)
        states = some.new_full((len(tokens), width, some.shape[-1]), torch.nan)
        return states.index_copy_(1, asked, some)

    def _in_parts(self, canvas: Canvas, seen: Tensor, offset: Tensor) -> Tensor:
        """Hidden states of all rows in several forwards, the longest rows first."""
        states = torch.zeros(len(seen), int(seen.max()), self.arch.hidden, dtype=self.dtype)
        order = seen.argsort(descending=True, stable=True)
        while len(order):
            width = int(seen[order[0]])
            count = max(1, CACHED_PLACES // width)
            rows, order = order[:count], order[count:]
            tokens, lengths = canvas.tokens[rows, :width], canvas.lengths[rows]
            asked = self._asked(canvas, rows)
            states[rows, :width] = self._padded(tokens, lengths, offset[rows], asked)
        return states

    def _unpadded(self, canvas: Canvas, seen: Tensor, offset: Tensor) -> Tensor:
        """Hidden states of all rows; a forward has rows of one length and one offset."""
        parts = []
        for value in sorted(set(offset.tolist())):
            rows = (offset == value).nonzero()[:, 0]
            asked = self._asked(canvas, rows)
            call = partial(self._without_padding, offset=torch.tensor([value]), asked=asked)
            parts.append((rows, by_length(canvas.tokens[rows], seen[rows], call)))
        if len(parts) == 1:
            return parts[0][1]
        order = torch.cat([rows for rows, _ in parts]).argsort()
        return torch.cat([states for _, states in parts])[ship(order, self.device)]

    def _without_padding(self, tokens: Tensor, offset: Tensor, asked: Tensor | None) -> Tensor:
        """Hidden states of rows without padding: [b, l] -> [b, l, D]."""
        return self._padded(tokens, torch.tensor([tokens.shape[-1]]), offset, asked)

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        """Logits of the requested cells; a shifted model predicts token i at position i - 1.

        A few cells are computed among zeros, so that a cell has the same bits as in a batch.
        """
        chosen = cells(hidden.states, rows, positions, self.arch.shift)
        return self.module.logits(several_rows(chosen))[: len(chosen)]

    def attention_mask(self, lengths: Tensor, width: int, offset: Tensor) -> Tensor | None:
        """True where a query may attend to a key, [B, 1, Q or 1, K]; None if everywhere."""
        if self.spec.block is None and int(lengths.min()) >= width:
            return None
        place = torch.arange(width)[None]
        real = place < lengths[:, None]  # [B, K]
        if self.spec.block is None:
            return ship(real[:, None, None], self.device)
        place = place + offset[:, None]
        mask = block_causal(place, place, self.spec.block) & real[:, None]
        return ship(mask[:, None], self.device)

    def with_block(self, block: int, from_prompt_end: bool | None = None) -> Pretrained:
        """The same weights with another block width, and blocks counted from another place."""
        if from_prompt_end is None:
            from_prompt_end = self.spec.from_prompt_end
        spec = replace(self.spec, block=block, from_prompt_end=from_prompt_end)
        return replace(self, spec=spec)

    def without_blocks(self) -> Pretrained:
        """The same weights with attention to everything."""
        spec = replace(self.spec, block=None, from_prompt_end=False, lead=False)
        return replace(self, spec=replace(spec, shadows=not self.arch.shift))


def whole_panels(asked: Tensor, width: int) -> Tensor:
    """Places [N] with as many others as fill whole panels, ascending, all below `width`."""
    missing = min(-len(asked) % PANEL if len(asked) else PANEL, width - len(asked))
    if not missing:
        return asked
    free = torch.ones(width, dtype=torch.bool)
    free[asked] = False
    return torch.cat([asked, free.nonzero()[-missing:, 0]]).sort().values
