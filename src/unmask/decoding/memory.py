"""The memory of a rule's parts: tensors of rows that are kept from step to step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import pad

from unmask.rules.memory import PartMemory


@dataclass(frozen=True)
class MemoryStore:
    """What the parts of a rule remember of B rows on canvases of L positions.

    It grows, shrinks and joins with the rows, as the tensors of a `State` do.
    """

    declared: tuple[PartMemory, ...] = ()
    values: dict[str, Tensor] = field(default_factory=dict)  # [B, ...] or [B, L, ...]

    @classmethod
    def of(cls, declared: tuple[PartMemory, ...], rows: int, length: int) -> MemoryStore:
        """New rows, which remember nothing yet."""
        values = {}
        for memory in declared:
            shape = (rows, *memory.size) if memory.row else (rows, length, *memory.size)
            values[memory.name] = torch.full(shape, memory.start, dtype=memory.dtype)
        return cls(declared, values)

    def __getitem__(self, rows: Tensor) -> MemoryStore:
        return MemoryStore(self.declared, {name: v[rows] for name, v in self.values.items()})

    def joined(self, others: Sequence[MemoryStore], length: int) -> MemoryStore:
        """These rows, then those of the others, on canvases of this length."""
        values = {}
        for memory in self.declared:
            parts = [store.values[memory.name] for store in (self, *others)]
            values[memory.name] = torch.cat([_fitted(memory, part, length) for part in parts])
        return MemoryStore(self.declared, values)

    def forget(self, rows: Tensor) -> None:
        """Reset what belongs to a window, in rows [B] that open the next one."""
        for memory in self.declared:
            if not memory.sequence:
                self.values[memory.name][rows] = memory.start

    def relay(self, source: Tensor) -> None:
        """Lay the canvases out anew: position i of a row was `source[i]`, or is empty below 0."""
        rows = torch.arange(len(source))[:, None]
        for memory in self.declared:
            if not memory.row:
                cells = self.values[memory.name][rows, source.clamp_min(0)]
                cells[source < 0] = memory.start
                self.values[memory.name] = cells

    def seen(self, start: Tensor, stop: Tensor, width: int) -> dict[str, Tensor]:
        """The memory of the rows' windows, as parts see it: [B, ...] or [B, W, ...].

        Positions beyond a row's own window have the start value.
        """
        if not self.declared:
            return {}
        rows, columns = torch.arange(len(start))[:, None], start[:, None] + torch.arange(width)
        beyond = columns >= stop[:, None]
        seen = {}
        for memory in self.declared:
            value = self.values[memory.name]
            if memory.row:
                seen[memory.name] = value.clone()
                continue
            cells = value[rows, columns.clamp_max(value.shape[1] - 1)]
            cells[beyond] = memory.start
            seen[memory.name] = cells
        return seen

    def write(self, new: Mapping[str, Tensor], start: Tensor, inside: Tensor) -> None:
        """Keep new values; those of positions only `inside` the rows' own windows, [B, W]."""
        rows, columns = inside.nonzero(as_tuple=True)
        for memory in self.declared:
            if memory.name in new and memory.row:
                self.values[memory.name] = new[memory.name].to(memory.dtype)
            elif memory.name in new:
                cells = new[memory.name][rows, columns].to(memory.dtype)
                self.values[memory.name][rows, start[rows] + columns] = cells


def _fitted(memory: PartMemory, values: Tensor, length: int) -> Tensor:
    if memory.row or values.shape[1] == length:
        return values
    missing = (0, 0) * len(memory.size) + (0, length - values.shape[1])
    return pad(values, missing, value=memory.start)
