"""Decides on blocks after forwards that the host makes; shared by sglang, vllm and diffusers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unmask.decoding.request import infill_request
from unmask.decoding.rows import Rows
from unmask.integrations.block_options import BlockOptions
from unmask.models.denoiser import Canvas, Hidden, ModelSpec, ship

_KEYS = itertools.count()


@dataclass
class BlockState:
    """The state of a block between two forwards; the host keeps it with its request.

    No other reference exists, so the memory is freed when the host drops the request.
    """

    rows: Rows | None = None
    key: int = -1

    def tokens(self) -> Tensor | None:
        """The block after the last decision, or None before the first: [W]."""
        if self.rows is None or self.key not in self.rows.keys:
            return None
        return self.rows.state.tokens[self.rows.keys.index(self.key)]


class GivenLogits:
    """A denoiser that makes no forwards: its hidden states are the logits that a host computed.

    `Hidden.states` is a pair: the logits of the host's batch, and the block of each row in it.
    """

    def __init__(self, spec: ModelSpec, device: torch.device) -> None:
        self.spec = spec
        self.device = device

    def trunk(self, canvas: Canvas) -> Hidden:
        raise AssertionError("the host makes the forwards")

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        """A copy of these rows, since the host may reuse its tensor for the next forward."""
        logits, places = hidden.states
        cells: Tensor = logits[ship(places[rows], logits.device), ship(positions, logits.device)]
        return cells


class Blocks:
    """Decides for any number of blocks at once, each as if it were alone.

    Each block is a separate canvas: a rule counts steps, windows and positions from the first
    forward and the first mask of the block.
    """

    def __init__(self, options: BlockOptions, mask_id: int, name: str) -> None:
        self.options = options
        self.mask_id = mask_id
        self.name = name
        self._model: GivenLogits | None = None

    @torch.no_grad()
    def step(
        self,
        tokens: Tensor,  # [B, W] on the CPU, as they were in the forward
        logits: Tensor,  # [B, W, V] of that forward, on any device; they are read, not kept
        states: Sequence[BlockState],  # one of each block; a new block has a new one
        seeds: Sequence[int],  # of new blocks
        fixed: Tensor | None = None,  # [B, W] True where a mask is part of the prompt and stays
    ) -> Tensor:
        """The blocks after one decision: [B, W] on the CPU."""
        no_mask = 0 if self.mask_id else 1
        canvases = tokens if fixed is None else tokens.masked_fill(fixed, no_mask)
        unfilled = (canvases == self.mask_id).any(-1).nonzero()[:, 0].tolist()
        if not unfilled:
            return tokens
        for place in unfilled:
            known = states[place].tokens()
            if known is None or not torch.equal(known, canvases[place]):
                states[place].rows = None  # a new block, or one that the host restarted
        model, settings = self._given(logits), self.options.settings
        rows = self._gathered([states[place] for place in unfilled]) or Rows(model, settings)
        for place in unfilled:
            if states[place].rows is None:
                states[place].key = next(_KEYS)
                request = infill_request(model.spec, canvases[place], settings, seeds[place])
                rows.admit(request, states[place].key)
            states[place].rows = rows
        places = {states[place].key: place for place in unfilled}
        order = torch.tensor([places[key] for key in rows.keys])
        after = tokens.clone()
        after[order] = rows.step(Hidden((logits, order)), 0).tokens
        return after if fixed is None else torch.where(fixed, tokens, after)

    def _gathered(self, states: Sequence[BlockState]) -> Rows | None:
        """The blocks that already have a state, as one group; None if all are new."""
        members = [(state.rows, state.key) for state in states if state.rows is not None]
        if not members:
            return None
        first, keys = members[0][0], {key for _, key in members}
        if all(rows is first for rows, _ in members) and keys == set(first.keys):
            return first
        return Rows.gathered(members)

    def _given(self, logits: Tensor) -> GivenLogits:
        if self._model is None:
            spec = self.options.spec(self.mask_id, logits.shape[-1])
            self._model = GivenLogits(replace(spec, name=self.name), logits.device)
        return self._model
