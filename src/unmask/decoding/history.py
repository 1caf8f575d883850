"""History: the logits of the last forward, and those at commit, in the model's dtype."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from unmask.decoding.sparse import Likeliest
from unmask.decoding.state import State, Where
from unmask.kernels.reduce import Past, Previous, divergence
from unmask.models.denoiser import ship
from unmask.rules.view import KL

K = TypeVar("K", bound="Kept")


class Kept(Protocol):
    """M distributions, or what is kept of them: `AllLogits` or `sparse.Likeliest`."""

    def rows(self: K, which: Tensor) -> K:
        """Some of the rows, by their numbers on the host."""

    def joined(self: K, others: Sequence[K]) -> K:
        """These rows, then those of the others."""

    def previous(self, slot: Tensor) -> Past:
        """The past of N rows: that of row n is the kept row `slot[n]`; -1 if it has none."""


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
    """All rows that a number >= 0 refers to, joined; the numbers are updated in place."""
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


def cells_where(mask: Tensor) -> Where:
    """The cells where a [B, L] bool tensor is True, in order."""
    rows, positions = mask.nonzero(as_tuple=True)
    return rows, positions


class History:
    """The kept distributions; `state.slot` holds the row of each cell's, or -1 without one.

    Nothing is copied from step to step: the logits of a forward are kept whole until the next. With
    `keep`, only so many of the likeliest tokens are kept; `suppressed` tokens never have any mass.
    """

    def __init__(self, keep: int | None = None, suppressed: tuple[int, ...] = ()) -> None:
        self.keep, self.suppressed = keep, suppressed
        self.last: Kept | None = None  # of the last forward, by `state.slot`
        self.at_commit: AllLogits | None = None  # by `state.anchor`

    @classmethod
    def joined(cls, parts: Sequence[tuple[History, State]]) -> History:
        """One history of several, for these states; their slots and anchors are renumbered."""
        new = cls(parts[0][0].keep, parts[0][0].suppressed)
        if len(parts) == 1:
            new.last, new.at_commit = parts[0][0].last, parts[0][0].at_commit
            return new
        new.last = gathered([(history.last, state.slot) for history, state in parts])
        new.at_commit = gathered([(history.at_commit, state.anchor) for history, state in parts])
        return new

    def previous(self, slot: Tensor) -> Past | None:
        """The distributions one forward ago of N cells with these slots."""
        return None if self.last is None else self.last.previous(slot)

    def push(self, state: State, where: Where, logits: Tensor) -> None:
        """Keep this forward's logits for the next one, and drop those of earlier forwards."""
        self.last = self._kept(logits)
        state.slot.fill_(-1)
        state.slot[where] = torch.arange(len(logits))

    def extend(self, state: State, where: Where, logits: Tensor) -> None:
        """Add cells of the same forward: a window that was opened after it."""
        assert self.last is not None
        used = (state.slot >= 0) & state.masked
        known, new = state.slot[used], self._kept(logits)
        state.slot.fill_(-1)
        state.slot[used] = torch.arange(len(known))
        state.slot[where] = torch.arange(len(known), len(known) + len(logits))
        self.last = self.last.rows(known).joined([new]) if len(known) else new

    def _kept(self, logits: Tensor) -> Kept:
        if self.keep is None:
            return AllLogits(logits)
        return Likeliest.of(logits, self.keep, self.suppressed)

    def anchor(self, state: State, cells: Where) -> None:
        """Remember the distributions of cells that are committed now."""
        assert isinstance(self.last, AllLogits)  # `Settings` refuses `revoke` with `history`
        new = self.last.rows(state.slot[cells])
        used = state.anchor >= 0
        count = int(used.sum())
        if self.at_commit is not None:
            new = self.at_commit.rows(state.anchor[used]).joined([new])
        state.anchor[used] = torch.arange(count)
        state.anchor[cells] = torch.arange(count, len(new.logits))
        self.at_commit = new

    def drift(self, state: State, where: Where, logits: Tensor, kl: KL) -> Tensor:
        """KL between a committed cell's distribution at commit and now, 0 for others: [N]."""
        drift = torch.zeros(len(logits), dtype=torch.float64, device=logits.device)
        anchor = state.anchor[where]
        watched = (anchor >= 0).nonzero()[:, 0]
        if self.at_commit is not None and len(watched):
            then = self.at_commit.rows(anchor[watched]).logits
            now = AllLogits(logits).rows(watched).logits
            pair = (then, now) if kl == "prev_cur" else (now, then)
            drift[ship(watched, drift.device)] = divergence(*pair)
        return drift
