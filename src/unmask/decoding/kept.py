"""What a history keeps of distributions: all of their logits, or their likeliest tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from unmask.kernels.reduce import Past, Previous
from unmask.models.denoiser import ship

K = TypeVar("K", bound="Kept")


class Kept(Protocol):
    """M distributions, or what is kept of them: `AllLogits` or `sparse.Likeliest`."""

    def rows(self: K, which: Tensor) -> K:
        """Some of the rows, by their numbers on the host."""

    def joined(self: K, others: Sequence[K]) -> K:
        """These rows, then those of the others."""

    def previous(self, slot: Tensor) -> Past:
        """The past of N rows: row n of now was row `slot[n]`, or none at -1."""


@dataclass(frozen=True)
class AllLogits:
    """Distributions kept whole."""

    logits: Tensor  # [M, V]

    def rows(self, which: Tensor) -> AllLogits:
        return AllLogits(self.logits[ship(which, self.logits.device)])

    def joined(self, others: Sequence[AllLogits]) -> AllLogits:
        return AllLogits(torch.cat([self.logits, *(other.logits for other in others)]))

    def previous(self, slot: Tensor) -> Previous:
        return Previous(self.logits, ship(slot, self.logits.device))


def gathered(parts: Sequence[tuple[K | None, Tensor]]) -> K | None:
    """The rows that are numbered somewhere, together; their numbers are changed in place."""
    used_rows: list[K] = []
    count = 0
    for kept, numbers in parts:
        used = numbers >= 0
        if kept is not None and bool(used.any()):
            used_rows.append(kept.rows(numbers[used]))
            more = int(used.sum())
            numbers[used] = torch.arange(count, count + more)
            count += more
    return used_rows[0].joined(used_rows[1:]) if used_rows else None
