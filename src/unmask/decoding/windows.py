"""Windows: the full answer, or its blocks from left to right; each row has one open window."""

from __future__ import annotations

import torch
from torch import Tensor

from unmask.decoding.state import State


def in_window(state: State) -> Tensor:
    """True inside each row's open window: [B, L]."""
    place = torch.arange(state.masked.shape[-1], device=state.masked.device)
    return (place >= state.start[:, None]) & (place < state.stop[:, None])


def open_windows(state: State, block: int | None) -> Tensor:
    """Open the next window with masks of every row that has filled its own; returns which: [B]."""
    done = state.masked.any(-1) & ~(state.masked & in_window(state)).any(-1)
    if not bool(done.any()):
        return done
    width = state.end - state.grid if block is None else block
    next_hole = state.masked.to(torch.uint8).argmax(-1)
    start = state.grid + (next_hole - state.grid) // width * width
    state.start = torch.where(done, torch.maximum(start, state.origin), state.start)
    state.stop = torch.where(done, torch.minimum(start + width, state.end), state.stop)
    alone = done & is_lead(state, next_hole[:, None])[:, 0]
    state.stop = torch.where(alone, next_hole + 1, state.stop)
    state.step = torch.where(done, 0, state.step)
    masks = (state.masked & in_window(state)).sum(-1)
    state.opened = torch.where(done, masks, state.opened)
    state.credit_token[done], state.credit[done] = -1, 0.0
    state.anchor[done] = -1
    return done


def is_lead(state: State, positions: Tensor) -> Tensor:
    """Whether positions, [B, N], begin a block whose first token is written alone."""
    return (state.lead > 0)[:, None] & (positions % state.lead.clamp_min(1)[:, None] == 0)


def windows_after(state: State, block: int | None) -> Tensor:
    """How many windows with masks come after the open one: [B]."""
    if block is None:
        return torch.zeros_like(state.nfe)
    place = torch.arange(state.masked.shape[-1], device=state.masked.device)
    later = (state.masked & (place >= state.stop[:, None])).long()
    window = (place - state.grid[:, None]).clamp_min(0) // block
    leads = (later * is_lead(state, place[None])).sum(-1)
    return torch.zeros_like(later).scatter_reduce(-1, window, later, "amax").sum(-1) + leads


def forwards_here(state: State, block: int | None, steps: int) -> Tensor:
    """How many forwards the open window may still take if the row has `steps` in all: [B].

    The share of its masks, but one forward is left for each later window; at least 1.
    """
    left = steps - state.nfe
    here = (state.masked & in_window(state)).sum(-1)
    everywhere = state.masked.sum(-1).clamp_min(1)
    fair = (left * here + everywhere - 1) // everywhere
    return torch.minimum(fair, left - windows_after(state, block)).clamp_min(1)
