"""Windows: the full answer, or its blocks from left to right; each row has one open window."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from unmask.decoding.state import State
from unmask.rules.rule import Rule
from unmask.rules.view import View


def open_windows(
    state: State, block: int | None, rule: Rule | None = None, held: Tensor | None = None
) -> Tensor:
    """Open the next window with masks of every row that has filled its own; returns which: [B].

    A window policy of the rule decides how wide it may be. Rows that are `held` stay as they are.
    """
    done = ~(state.masked & state.window).any(-1)
    if not bool(done.any()):
        return done
    done &= state.masked.any(-1)
    if held is not None:
        done &= ~held
    width = state.end - state.grid if block is None else block
    next_hole = state.masked.to(torch.uint8).argmax(-1)
    start = state.grid + (next_hole - state.grid) // width * width
    if rule is not None and rule.window is not None:
        start, width = next_hole, rule.window.reach(state.end - state.origin, block)
    first = torch.maximum(start, state.origin)
    if rule is not None and rule.needs.earlier:
        first = state.origin
    state.start = torch.where(done, first, state.start)
    state.stop = torch.where(done, torch.minimum(start + width, state.end), state.stop)
    alone = done & is_lead(state, next_hole[:, None])[:, 0]
    state.stop = torch.where(alone, next_hole + 1, state.stop)
    state.step = torch.where(done, 0, state.step)
    masks = (state.masked & state.window).sum(-1)
    state.opened = torch.where(done, masks, state.opened)
    state.windows = state.windows + done.long()
    state.credit_token[done], state.credit[done] = -1, 0.0
    state.anchor[done] = -1
    state.memory.forget(done)
    return done


def is_lead(state: State, positions: Tensor) -> Tensor:
    """Whether positions, [B, N], begin a block whose first token is written alone."""
    return (state.lead > 0)[:, None] & (positions % state.lead.clamp_min(1)[:, None] == 0)


def resize_windows(state: State, rule: Rule, block: int | None, more: Tensor, anew: Tensor) -> None:
    """Fit the windows to canvases that have grown: by `more` inside them, [B], or in rows `anew`.

    A block keeps its place in the grid. Rows `anew`, [B], also begin their window anew.
    """
    if rule.window is not None:
        reach = rule.window.reach(state.end - state.origin, block)
        stop = torch.where(anew, state.start + reach, state.stop + more)
    elif block is None:
        stop = state.end
    else:
        stop = state.grid + ((state.stop - 1 - state.grid) // block + 1) * block
    state.stop = torch.where(anew | (more > 0), torch.minimum(stop, state.end), state.stop)
    state.step = torch.where(anew, 0, state.step)
    masks = (state.masked & state.window).sum(-1)
    state.opened = torch.where(anew, masks, state.opened + more)
    state.memory.forget(anew)


def narrowed(state: State, view: View, rule: Rule, block: int | None) -> View:
    """Shorten the windows that were just opened, as the rule's window policy says."""
    assert rule.window is not None
    stop = torch.minimum(state.start + rule.window(view, block), state.stop)
    state.stop = torch.where(state.step == 0, stop, state.stop)
    place = torch.arange(view.masked.shape[-1], device=view.masked.device)
    masked = view.masked & (place < (state.stop - state.start)[:, None])
    masks = (state.masked & state.window).sum(-1)
    state.opened = torch.where(state.step == 0, masks, state.opened)
    return replace(view, masked=masked, progress=replace(view.progress, opened=state.opened))


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
    here = (state.masked & state.window).sum(-1)
    everywhere = state.masked.sum(-1).clamp_min(1)
    fair = (left * here + everywhere - 1) // everywhere
    return torch.minimum(fair, left - windows_after(state, block)).clamp_min(1)
