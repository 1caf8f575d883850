"""History: the logits of the last forward, and those at commit, in the model's dtype."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unmask.models.base import ship
from unmask.reduce import Previous, divergence
from unmask.state import State
from unmask.view import KL

Where = tuple[Tensor, Tensor]  # N cells of the canvas: rows and positions, [N] each


def cells_where(mask: Tensor) -> Where:
    """The cells where a [B, L] bool tensor is True, in order."""
    rows, positions = mask.nonzero(as_tuple=True)
    return rows, positions


class History:
    """Logits by cell: `state.slot` says where a cell's lie, -1 that there are none.

    Nothing is copied from step to step: the logits of a forward are kept whole until the next.
    """

    def __init__(self) -> None:
        self.last: Tensor | None = None  # [M, V] of the last forward
        self.at_commit: Tensor | None = None  # [M, V], by `state.anchor`

    @classmethod
    def joined(cls, parts: Sequence[tuple[History, State]]) -> History:
        """What several histories keep for these states, whose slots and anchors become its own."""
        new = cls()
        if len(parts) == 1:
            new.last, new.at_commit = parts[0][0].last, parts[0][0].at_commit
            return new
        new.last = _gathered([(history.last, state.slot) for history, state in parts])
        new.at_commit = _gathered([(history.at_commit, state.anchor) for history, state in parts])
        return new

    def previous(self, state: State, where: Where) -> Previous | None:
        """What these cells looked like one forward ago."""
        if self.last is None:
            return None
        return Previous(self.last, ship(state.slot[where], self.last.device))

    def push(self, state: State, where: Where, logits: Tensor) -> None:
        """Keep this forward's logits for the next; anything older is no history."""
        self.last = logits
        state.slot.fill_(-1)
        state.slot[where] = torch.arange(len(logits))

    def extend(self, state: State, where: Where, logits: Tensor) -> None:
        """Add cells of the same forward: a window that was opened after it."""
        assert self.last is not None
        used = (state.slot >= 0) & state.masked
        old = _rows(self.last, state.slot[used])
        state.slot.fill_(-1)
        state.slot[used] = torch.arange(len(old))
        state.slot[where] = torch.arange(len(old), len(old) + len(logits))
        self.last = torch.cat([old, logits]) if len(old) else logits

    def anchor(self, state: State, cells: Where) -> None:
        """Remember how cells that are committed now looked."""
        assert self.last is not None
        new = _rows(self.last, state.slot[cells])
        used = state.anchor >= 0
        held = new[:0] if self.at_commit is None else _rows(self.at_commit, state.anchor[used])
        state.anchor[used] = torch.arange(len(held))
        state.anchor[cells] = torch.arange(len(held), len(held) + len(new))
        self.at_commit = torch.cat([held, new])

    def drift(self, state: State, where: Where, logits: Tensor, kl: KL) -> Tensor:
        """KL between a committed cell's distribution at commit and now, 0 for others: [N]."""
        moved = torch.zeros(len(logits), dtype=torch.float64, device=logits.device)
        anchor = state.anchor[where]
        watched = (anchor >= 0).nonzero()[:, 0]
        if self.at_commit is not None and len(watched):
            then, now = _rows(self.at_commit, anchor[watched]), _rows(logits, watched)
            pair = (then, now) if kl == "prev_cur" else (now, then)
            moved[ship(watched, moved.device)] = divergence(*pair)
        return moved


def _gathered(parts: Sequence[tuple[Tensor | None, Tensor]]) -> Tensor | None:
    """The rows of logits that are numbered somewhere, as one tensor; they are numbered anew."""
    kept: list[Tensor] = []
    for logits, numbers in parts:
        used = numbers >= 0
        if logits is not None and bool(used.any()):
            rows, count = _rows(logits, numbers[used]), sum(map(len, kept))
            numbers[used] = torch.arange(count, count + len(rows))
            kept.append(rows)
    return torch.cat(kept) if kept else None


def _rows(logits: Tensor, which: Tensor) -> Tensor:
    """Some rows of logits, by their numbers on the host."""
    return logits[ship(which, logits.device)]
