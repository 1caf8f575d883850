"""The likeliest tokens of each position, and the KL to the step before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.kernels.common import chunks, working_dtype
from unmask.kernels.reference import row_sum
from unmask.models.denoiser import ship
from unmask.rules.view import BOTH_KL, Divergence
from unmask.trace.recording.stack import Glimpse, Stack

MOST = 5  # tokens per position
CHUNK = 1 << 15  # elements per chunk: small enough for memory that the allocator reuses


@dataclass(frozen=True)
class Cells:
    """The logits of one row in K steps: N cells, sorted by step."""

    step: Tensor  # [N] 0..K-1, on the host, as are the positions
    positions: Tensor  # [N]
    values: Tensor  # [N, V] on the model's device

    @classmethod
    def of(cls, glimpses: Sequence[Glimpse]) -> Cells:
        """The cells of each glimpse's row."""
        positions, values = zip(*(_own(glimpse) for glimpse in glimpses), strict=True)
        counts = torch.tensor([len(each) for each in positions])
        step = torch.arange(len(positions)).repeat_interleave(counts)
        return cls(step, _joined(positions), _joined(values))

    def last_step(self) -> Cells:
        """Only the cells of the last step."""
        first = int((self.step < self.step.max()).sum()) if len(self.step) else 0
        return Cells(self.step[first:], self.positions[first:], self.values[first:].clone())

    def candidates(self, stack: Stack) -> Tensor:
        """The cells that a rule could choose: [N] bool."""
        masked = stack.view.masked
        place = self.positions - stack.start[self.step]
        inside = (place >= 0) & (place < masked.shape[-1])
        return inside & masked[self.step, place.clamp(0, masked.shape[-1] - 1)]


def outlook(
    cells: Cells, before: Cells | None, kl: Divergence | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The likeliest tokens of each cell and their log-probabilities, on the host: [N, k] each.

    With `kl`, which is given if the rule computes no instability, also the KL to the step before,
    NaN without one: [N]. `before` holds the cells of the step before the first.
    """
    slot = None if kl is None else ship(_one_step_earlier(cells, before), cells.values.device)
    count = min(MOST, cells.values.shape[-1])
    pieces = []
    for rows in chunks(cells.values, CHUNK):
        now = _log_softmax(cells.values[rows])
        top = now.topk(count, dim=-1)
        moved = None
        if kl is not None and slot is not None:
            moved = _moved(now, _earlier(cells, before, slot[rows]), slot[rows], kl)
        pieces.append((top.indices, top.values, moved))
    tokens, log_p, moves = zip(*pieces, strict=True)
    moved = torch.cat(moves).cpu() if kl else None
    return (torch.cat(tokens).cpu(), torch.cat(log_p).cpu(), moved)


def _log_softmax(values: Tensor) -> Tensor:
    return values.to(working_dtype(values)).log_softmax(-1)


def _earlier(cells: Cells, before: Cells | None, slot: Tensor) -> Tensor:
    """The logits of the step before, arbitrary where there are none: [n, V]."""
    if before is None or not len(before.positions):
        return cells.values[slot.clamp_min(0)]
    held = len(before.positions)
    inside = cells.values[(slot - held).clamp_min(0)]
    return torch.where((slot < held)[:, None], before.values[slot.clamp(0, held - 1)], inside)


def _moved(now: Tensor, earlier: Tensor, slot: Tensor, kl: Divergence) -> Tensor:
    """KL between two steps, NaN where slot is -1: [n]."""
    assert kl in BOTH_KL, "a rule that reads another divergence computes it"
    then = _log_softmax(earlier)
    first, second = (then, now) if kl == "prev_cur" else (now, then)
    gap = torch.where(first > -torch.inf, first - second, 0.0)  # 0 log 0 = 0
    divergence = row_sum(first.exp() * gap).clamp_min(0.0).double()
    return torch.where(slot >= 0, divergence, torch.nan)


def _one_step_earlier(cells: Cells, before: Cells | None) -> Tensor:
    """The index of each cell one step before, in `before` followed by `cells`; -1: none. [N]"""
    if not len(cells.positions):
        return cells.positions
    width = int(cells.positions.max()) + 1
    table = cells.step.new_full((int(cells.step[-1]) + 2, width), -1)  # [K + 1, L]
    held = 0
    if before is not None:
        held = len(before.positions)
        known = before.positions < width
        table[0, before.positions[known]] = torch.arange(held)[known]
    places = torch.arange(held, held + len(cells.step))
    table[cells.step + 1, cells.positions] = places
    return table[cells.step, cells.positions]


def _own(glimpse: Glimpse) -> tuple[Tensor, Tensor]:
    kept = glimpse.step.logits
    assert kept is not None, "a trace needs steps with their logits: keep_logits=True"
    if len(glimpse.step.keys) == 1:
        return kept.positions, kept.values
    mine = (kept.rows == glimpse.row).nonzero()[:, 0]
    return kept.positions[mine], kept.values[ship(mine, kept.values.device)]


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """The concatenation; a single part is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))
