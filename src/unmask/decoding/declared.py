"""Fields of a view that are computed only if a part declares them, from more cells than usual."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unmask.decoding.history import cells_where
from unmask.decoding.predict import head
from unmask.decoding.state import State, Where
from unmask.decoding.windows import narrowed
from unmask.kernels.reduce import reduce
from unmask.models.denoiser import Hidden, ship
from unmask.rules.view import View

if TYPE_CHECKING:
    from unmask.decoding.rows import Rows


def with_declared(group: Rows, view: View, hidden: Hidden, first: int) -> View:
    """The view with what parts declare beyond the cells that are computed anyway."""
    state, needs, progress = group.state, group.needs, view.progress
    if needs.ends:
        progress = replace(progress, ended=group.eos.ended(state))
    if needs.gaps is not None:
        cells = group.fresh(_answer_cells(state, *needs.gaps), hidden, first)
        where = cells_where(cells)
        gaps = _logit_gaps(state, needs.gaps, where, head(group, hidden, first, where))
        progress = replace(progress, gaps=gaps)
    if needs.rechecks:
        view = replace(view, standing=_standing(state, view.masked.shape[-1]))
    view = replace(view, progress=progress)
    if needs.support:
        view = replace(view, support=_support(group, view, hidden, first))
    if needs.shadow:
        assert hidden.shadow is not None
        view = replace(view, shadow=_support(group, view, hidden.shadow, first))
    rule = group.settings.rule
    return narrowed(state, view, rule, group.settings.block) if rule.window else view


def _support(group: Rows, view: View, hidden: Hidden, first: int) -> Tensor:
    """The probability of committed tokens by these hidden states: [B, W]."""
    rows, columns = view.revocable.nonzero(as_tuple=True)
    support = torch.zeros_like(view.confidence)
    if len(rows):
        logits = head(group, hidden, first, (rows, group.state.start[rows] + columns))
        tokens = ship(view.declared("standing")[rows, columns], logits.device)
        support[rows, columns] = reduce(logits, tokens=tokens).confidence.cpu()
    return support


def _standing(state: State, width: int) -> Tensor:
    """The tokens that the canvas holds in windows of this width: [B, W]."""
    columns = state.start[:, None] + torch.arange(width)
    return state.tokens.gather(-1, columns.clamp_max(state.tokens.shape[-1] - 1))


def _answer_cells(state: State, begin: int, count: int) -> Tensor:
    """True at `count` positions from the answer's `begin` on, masks or not: [B, L]."""
    place = torch.arange(state.tokens.shape[-1]) - state.origin[:, None]
    inside = (place >= begin) & (place < begin + count)
    return inside & (place < (state.length - state.origin)[:, None])


def _logit_gaps(state: State, span: tuple[int, int], where: Where, logits: Tensor) -> Tensor:
    """The largest logit minus the next of N cells of the answer; NaN for the others: [B, n]."""
    begin, count = span
    gaps = torch.full((len(state), count), torch.nan, dtype=torch.float64)
    rows, positions = where
    if len(rows):
        two = logits.topk(2, -1).values.double().cpu()
        gaps[rows, positions - state.origin[rows] - begin] = two[:, 0] - two[:, 1]
    return gaps
