"""What the model said beyond its first choice: the likeliest tokens, and how far it had moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.reduce import chunks, divergence, working_dtype
from unmask.trace.stack import Glimpse, Stack
from unmask.view import KL

MOST = 5  # tokens per position


@dataclass(frozen=True)
class Cells:
    """What was computed for one row in K steps: N cells, step by step in their order."""

    step: Tensor  # [N] 0..K-1
    positions: Tensor  # [N]
    values: Tensor  # [N, V]

    @classmethod
    def of(cls, glimpses: Sequence[Glimpse]) -> Cells:
        """Those of each glimpse's own row."""
        found = [_own(glimpse) for glimpse in glimpses]
        positions = _joined([cells[0] for cells in found])
        counts = torch.tensor([len(cells[0]) for cells in found], device=positions.device)
        step = torch.arange(len(found), device=positions.device).repeat_interleave(counts)
        return cls(step, positions, _joined([cells[1] for cells in found]))

    def last_step(self) -> Cells:
        """The cells of the last step alone."""
        kept = self.step == self.step.max()
        return Cells(self.step[kept], self.positions[kept], self.values[kept])

    def candidates(self, stack: Stack) -> Tensor:
        """Which of the cells a rule could choose: [N] bool."""
        masked = stack.view.masked
        place = self.positions - stack.start[self.step]
        inside = (place >= 0) & (place < masked.shape[-1])
        return inside & masked[self.step, place.clamp(0, masked.shape[-1] - 1)]


def likeliest(values: Tensor) -> tuple[Tensor, Tensor]:
    """The likeliest tokens and their log-probabilities: [N, V] -> [N, k] each."""
    count = min(MOST, values.shape[-1])
    tokens, log_p = [], []
    for rows in chunks(values):
        z = values[rows].to(working_dtype(values))
        top = z.topk(count, dim=-1)
        tokens.append(top.indices)
        log_p.append(top.values - z.logsumexp(-1, keepdim=True))
    return torch.cat(tokens), torch.cat(log_p)


def movement(cells: Cells, before: Cells | None, kl: KL) -> Tensor:
    """KL between each cell's distribution and its own one step earlier, NaN without one: [N].

    For rules that compare nothing themselves; `before` are the cells of the step before the first.
    """
    moved = torch.full(cells.positions.shape, torch.nan, dtype=torch.float64)
    moved = moved.to(cells.positions.device)
    if not len(cells.positions):
        return moved
    past, slot = cells.values, _one_step_earlier(cells, before)
    if before is not None and len(before.positions):
        past = torch.cat([before.values, cells.values]) if int(cells.step[-1]) else before.values
    seen = slot >= 0
    then, now = past[slot[seen]], cells.values[seen]
    moved[seen] = divergence(then, now) if kl == "prev_cur" else divergence(now, then)
    return moved


def _one_step_earlier(cells: Cells, before: Cells | None) -> Tensor:
    """Which cell each one was, in `before` and then `cells`; -1 for none: [N]."""
    width = int(cells.positions.max()) + 1
    table = cells.step.new_full((int(cells.step[-1]) + 2, width), -1)  # [K + 1, L]
    held = 0
    if before is not None:
        held = len(before.positions)
        known = before.positions < width
        table[0, before.positions[known]] = torch.arange(held, device=known.device)[known]
    places = torch.arange(held, held + len(cells.step), device=table.device)
    table[cells.step + 1, cells.positions] = places
    return table[cells.step, cells.positions]


def _own(glimpse: Glimpse) -> tuple[Tensor, Tensor]:
    kept = glimpse.step.logits
    assert kept is not None, "a trace needs steps with their logits: keep_logits=True"
    if len(glimpse.step.keys) == 1:
        return kept.positions, kept.values
    mine = kept.rows == glimpse.row
    return kept.positions[mine], kept.values[mine]


def _joined(parts: list[Tensor]) -> Tensor:
    """One tensor; a single part is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(parts)
