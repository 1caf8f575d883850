"""Writes outside the selection: over committed tokens, after the window, into new positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unmask.decoding.growth import NEW, doubtful_candidates, end_confidence, grown
from unmask.decoding.history import cells_where
from unmask.decoding.predict import drawn_tokens, head
from unmask.kernels.reduce import reduce
from unmask.models.denoiser import Hidden
from unmask.rules.rule import Decision
from unmask.rules.view import View

if TYPE_CHECKING:
    from unmask.decoding.rows import Rows


def rewrite(
    group: Rows, view: View, decision: Decision, hidden: Hidden, first: int
) -> Tensor | None:
    """Write what the rule writes over committed tokens and after the window: [B, L] bool."""
    if decision.written is None and decision.finished is None:
        return None
    state, cells = group.state, torch.zeros_like(group.state.masked)
    if decision.written is not None:
        rows, columns = decision.written.nonzero(as_tuple=True)
        where = rows, state.start[rows] + columns
        tokens = view.token if decision.tokens is None else decision.tokens
        state.commit(where, tokens[rows, columns])
        cells[where] = True
    if decision.finished is not None and bool(decision.finished.any()):
        finished = decision.finished & ~state.sizing  # nothing is committed while a canvas is sized
        rest = group.fresh(state.masked & finished[:, None], hidden, first)
        where = cells_where(rest)
        if len(where[0]):
            logits = head(group, hidden, first, where)
            state.commit(where, drawn_tokens(group, logits, where))
        cells |= rest
    return cells


def grow(
    group: Rows, view: View, decision: Decision, filled: Tensor, hidden: Hidden, first: int
) -> tuple[Tensor | None, Tensor]:
    """Grow the canvases; returns where positions come from, and `filled` at its new places."""
    state, growth, eos = group.state, group.settings.growth, group.spec.eos_id
    assert growth is not None
    assert eos is not None
    doubtful = doubtful_candidates(view, decision, growth.low)
    asks = (state.end - state.origin < growth.most) & (state.sizing | doubtful.any(-1))
    where = cells_where(group.fresh(state.answer & asks[:, None], hidden, first))
    sureness = torch.zeros(len(state), dtype=torch.float64)
    if len(where[0]):
        stats = reduce(head(group, hidden, first, where)).on_host()
        sureness = end_confidence(len(state), where, stats, eos, growth.ends)
    layout = grown(state, group.settings, group.spec, sureness, doubtful)
    if layout is None:
        return None, filled
    group.move((layout.source == NEW).any(-1))
    there = filled.gather(-1, layout.source.clamp(0, filled.shape[-1] - 1))
    return layout.source, there & (layout.source >= 0)
