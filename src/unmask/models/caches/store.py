"""The keys and values that a cache keeps."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import pad


@dataclass
class KeyValueStore:
    """Keys and values of all layers, [B, H, L + 1, D] each; padding goes to the last position."""

    layers: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    shape: torch.Size = field(default_factory=lambda: torch.Size((0, 0)))  # B, L
    # Of the current forward:
    rows: Tensor | None = None  # [b] ascending
    where: Tensor | None = None  # [b, Q] positions
    length: int = 0  # of its canvases; at most L

    def open(self, rows: Tensor, where: Tensor, length: int) -> None:
        """Begin a forward of some rows."""
        self.rows, self.where, self.length = rows, where, length

    def update(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write new keys and values at their positions; returns those of the whole canvases."""
        assert self.rows is not None
        if layer not in self.layers:
            _, heads, _, size = keys.shape
            empty = keys.new_zeros(self.shape[0], heads, self.shape[1] + 1, size)
            self.layers[layer] = (empty, empty.clone())
        for kept, new in zip(self.layers[layer], (keys, values), strict=True):
            kept[self.rows[:, None], :, self.where] = new.transpose(1, 2)
        k, v = (kept[:, :, : self.length] for kept in self.layers[layer])
        return (k, v) if len(self.rows) == len(k) else (k[self.rows], v[self.rows])

    def take(self, rows: Tensor, known: Tensor, shape: torch.Size) -> None:
        """Reorder the rows for canvases of this shape; rows that are not `known` become zero."""
        for layer, pair in self.layers.items():
            grown = (resized(kept[:, :, :-1], shape[-1] + 1, 2)[rows] for kept in pair)
            k, v = (torch.where(known[:, None, None, None], kept, 0.0) for kept in grown)
            self.layers[layer] = (k, v)
        self.shape = shape


def resized(kept: Tensor, length: int, axis: int) -> Tensor:
    """Cut an axis, or pad its end with zeros."""
    have = kept.shape[axis]
    if have >= length:
        return kept.narrow(axis, 0, length)
    padding = [0, 0] * (kept.ndim - 1 - axis) + [0, length - have]
    return pad(kept, padding)
