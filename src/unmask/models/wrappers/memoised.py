"""A model that never computes the same canvas twice, to compare rules on the same prompts."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from unmask.errors import ModelError
from unmask.models.denoiser import Canvas, Hidden, read_at, ship
from unmask.models.pretrained import Pretrained

ROWS = 64  # of one forward; more rows would not fit into the processor's cache
MOST_BYTES = 3 * 2**29  # of hidden states; beyond it the memory is cleared

Key = tuple[int, bytes]  # the first position that is stored, and the canvas


class Memoised:
    """A checkpoint with a memory of its hidden states, one entry per canvas.

    Rules that are compared on the same prompts reach the same canvases often: the empty one
    always, and in blocks every finished block. Rows of each length share a forward without
    padding, so an entry equals what the row alone would get, up to rounding.
    """

    def __init__(self, model: Pretrained) -> None:
        if model.spec.block is not None:
            raise ModelError(f"{model.spec.name} attends in blocks; use its block cache instead")
        self.model, self.device = model, model.device
        self.spec = replace(model.spec, shadows=False)
        self.asked = self.computed = 0  # rows
        self.forget()

    def forget(self) -> None:
        """Clear the memory."""
        self._first_cell: dict[Key, int] = {}  # where a canvas begins in the memory
        self._size = 0
        self._states = torch.empty(0)

    def trunk(self, canvas: Canvas) -> Hidden:
        """Compute the new canvases, and look up the memory cells of every row."""
        tokens, lengths = canvas.tokens, canvas.lengths.tolist()
        if self._size * max(self.model.arch.hidden, 1) * 4 > MOST_BYTES:
            self.forget()
        first_free = (~canvas.given).int().argmax(-1)
        begin = read_at(first_free, self.model.arch.shift).tolist()  # the head needs no earlier one
        keys = [
            (first, row[:size].tobytes())
            for first, row, size in zip(begin, tokens.numpy(), lengths, strict=True)
        ]
        fresh: dict[Key, int] = {}  # the first of several equal rows
        for row, key in enumerate(keys):
            if key not in self._first_cell:
                fresh.setdefault(key, row)
        self.asked += len(keys)
        self.computed += len(fresh)
        self._compute(canvas, fresh)
        cells = torch.tensor([self._first_cell[key] for key in keys])
        return Hidden((self._states, cells - torch.tensor(begin)))

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        states, offset = hidden.states
        source = read_at(positions, self.model.arch.shift)
        return self.model.module.logits(states[ship(offset[rows] + source, states.device)])

    def _compute(self, canvas: Canvas, fresh: dict[Key, int]) -> None:
        by_length: dict[int, list[Key]] = {}
        for key, row in fresh.items():
            by_length.setdefault(int(canvas.lengths[row]), []).append(key)
        for length, members in by_length.items():
            for place in range(0, len(members), ROWS):
                some = members[place : place + ROWS]
                first = min(begin for begin, _ in some)
                tokens = canvas.tokens[[fresh[key] for key in some], :length]
                asked = torch.arange(first, length, device=self.device)
                states = self.model.module(ship(tokens, self.device), asked=asked)
                for key, state in zip(some, states, strict=True):
                    self._first_cell[key] = self._keep(state[key[0] - first :])

    def _keep(self, states: Tensor) -> int:
        """Append cells [n, D] to the memory; returns the index of the first."""
        first, self._size = self._size, self._size + len(states)
        if self._size > len(self._states):
            grown = states.new_empty(max(2 * self._size, 4096), states.shape[-1])
            grown[:first] = self._states[:first] if first else grown[:0]
            self._states = grown
        self._states[first : self._size] = states
        return first
