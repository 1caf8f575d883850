"""What a view holds only if a part declares it, and what takes cells of its own to compute."""

from __future__ import annotations

import torch
from torch import Tensor

from unmask.decoding.state import State, Where


def standing(state: State, width: int) -> Tensor:
    """The tokens that the canvas holds in windows of this width: [B, W]."""
    columns = state.start[:, None] + torch.arange(width)
    return state.tokens.gather(-1, columns.clamp_max(state.tokens.shape[-1] - 1))


def answer_cells(state: State, begin: int, count: int) -> Tensor:
    """True at `count` positions of the answer from `begin` on: [B, L]."""
    place = torch.arange(state.tokens.shape[-1]) - state.origin[:, None]
    inside = (place >= begin) & (place < begin + count)
    return inside & (place < (state.end - state.origin)[:, None])


def logit_gaps(state: State, span: tuple[int, int], where: Where, logits: Tensor) -> Tensor:
    """The largest logit minus the next of N cells of the answer; NaN for the others: [B, n]."""
    begin, count = span
    gaps = torch.full((len(state), count), torch.nan, dtype=torch.float64)
    rows, positions = where
    if len(rows):
        two = logits.topk(2, -1).values.double().cpu()
        gaps[rows, positions - state.origin[rows] - begin] = two[:, 0] - two[:, 1]
    return gaps
