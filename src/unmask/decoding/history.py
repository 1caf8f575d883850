"""History: the logits of the last forward, and those at commit, in the model's dtype."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unmask.decoding.sparse import Likeliest, SparsePrevious
from unmask.decoding.state import State
from unmask.kernels.reduce import Previous, divergence
from unmask.models.denoiser import ship
from unmask.rules.view import KL

Where = tuple[Tensor, Tensor]  # N cells of the canvas: rows and positions, [N] each
Kept = Tensor | Likeliest  # what is remembered of some rows of logits


def cells_where(mask: Tensor) -> Where:
    """The cells where a [B, L] bool tensor is True, in order."""
    rows, positions = mask.nonzero(as_tuple=True)
    return rows, positions


class History:
    """Logits by cell: `state.slot` says where a cell's lie, -1 that there are none.

    Nothing is copied from step to step: the logits of a forward are kept whole until the next. With
    `keep` they are not: so many of the likeliest tokens are, and `suppressed` never has any mass.
    """

    def __init__(self, keep: int | None = None, suppressed: tuple[int, ...] = ()) -> None:
        self.keep, self.suppressed = keep, suppressed
        self.last: Kept | None = None  # [M, V] of the last forward
        self.at_commit: Tensor | None = None  # [M, V], by `state.anchor`

    @classmethod
    def joined(cls, parts: Sequence[tuple[History, State]]) -> History:
        """What several histories keep for these states, whose slots and anchors become its own."""
        new = cls(parts[0][0].keep, parts[0][0].suppressed)
        if len(parts) == 1:
            new.last, new.at_commit = parts[0][0].last, parts[0][0].at_commit
            return new
        new.last = _gathered([(history.last, state.slot) for history, state in parts])
        anchored = _gathered([(history.at_commit, state.anchor) for history, state in parts])
        assert not isinstance(anchored, Likeliest)
        new.at_commit = anchored
        return new

    def previous(self, state: State, where: Where) -> Previous | SparsePrevious | None:
        """What these cells looked like one forward ago."""
        if self.last is None:
            return None
        if isinstance(self.last, Likeliest):
            slot = ship(state.slot[where], self.last.tokens.device)
            return SparsePrevious(self.last, slot, self.suppressed)
        return Previous(self.last, ship(state.slot[where], self.last.device))

    def push(self, state: State, where: Where, logits: Tensor) -> None:
        """Keep this forward's logits for the next; anything older is no history."""
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
        self.last = _joined([_some(self.last, known), new]) if len(known) else new

    def _kept(self, logits: Tensor) -> Kept:
        return logits if self.keep is None else Likeliest.of(logits, self.keep, self.suppressed)

    def anchor(self, state: State, cells: Where) -> None:
        """Remember how cells that are committed now looked."""
        assert isinstance(self.last, Tensor)  # settings with drift keep all of it
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


def _gathered(parts: Sequence[tuple[Kept | None, Tensor]]) -> Kept | None:
    """The rows that are numbered somewhere, together; they are numbered anew."""
    found: list[Kept] = []
    count = 0
    for kept, numbers in parts:
        used = numbers >= 0
        if kept is not None and bool(used.any()):
            found.append(_some(kept, numbers[used]))
            more = int(used.sum())
            numbers[used] = torch.arange(count, count + more)
            count += more
    return _joined(found) if found else None


def _joined(parts: Sequence[Kept]) -> Kept:
    """All rows, in order."""
    sparse = [part for part in parts if isinstance(part, Likeliest)]
    if sparse:
        return Likeliest.joined(sparse)
    return torch.cat([part for part in parts if isinstance(part, Tensor)])


def _some(kept: Kept, which: Tensor) -> Kept:
    """Some rows, by their numbers on the host."""
    if isinstance(kept, Likeliest):
        return kept.rows(ship(which, kept.tokens.device))
    return _rows(kept, which)


def _rows(logits: Tensor, which: Tensor) -> Tensor:
    """Some rows of logits, by their numbers on the host."""
    return logits[ship(which, logits.device)]
