"""A canvas that grows while it is decoded (DAEDAL): the answer's length is found, not given."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.decoding.request import Settings
from unmask.decoding.state import State, Where
from unmask.decoding.windows import resize_windows
from unmask.kernels.common import Stats
from unmask.models.denoiser import ModelSpec
from unmask.rules.rule import Decision
from unmask.rules.select import best_first, first_in
from unmask.rules.view import View

NEW, NOTHING = -1, -2  # sources of a position: a new mask, or beyond the canvas


def end_confidence(rows: int, where: Where, stats: Stats, eos: int, count: int) -> Tensor:
    """How sure the model is of the end of each row, by all cells of its answer: [B].

    The sum of p(EOS) over the last `count` positions whose likeliest token is EOS, over `count`.
    """
    ending = stats.token == eos
    row, p = where[0][ending], stats.confidence[ending]
    after = torch.bincount(row, minlength=rows).cumsum(0)[row] - torch.arange(len(row))
    last = after <= count  # cells are ordered by row, then by position
    sums = torch.zeros(rows, dtype=torch.float64)
    return sums.index_add(0, row[last], p[last].double()) / count


def doubtful_candidates(view: View, decision: Decision, low: float) -> Tensor:
    """The least confident candidate that a step leaves, if it has less than `low`: [B, W]."""
    left = view.masked & ~decision.chosen & (view.confidence < low)
    return first_in(best_first(-view.confidence, left), 1, left)


@dataclass(frozen=True)
class Grown:
    """A new layout of B canvases: where each position comes from, and how long they are."""

    source: Tensor  # [B, L] the old position, NEW or NOTHING
    length: Tensor  # [B]


def grown(
    state: State, settings: Settings, spec: ModelSpec, sureness: Tensor, doubtful: Tensor
) -> Grown | None:
    """Grow the canvases after a step; None if none changes.

    Args:
        sureness: how sure the end of each row was in this forward, [B].
        doubtful: candidates that may become several masks, [B, W].
    """
    growth = settings.growth
    assert growth is not None
    assert spec.eos_id is not None
    room = growth.most - (state.end - state.origin)
    sizing = state.sizing.clone()
    longer = sizing & (sureness < growth.sure) & (room > 0)
    ready = sizing & ~longer
    split = ~sizing & doubtful.any(-1) & (sureness < growth.surer) & (room > 0)
    split &= growth.factor > 1  # else the candidate would only become another mask
    tail = torch.where(longer, room.clamp_max(growth.factor), 0)
    tail = torch.where(ready, room.clamp_max(growth.ends // 2), tail)
    more = torch.where(split, growth.factor - 1, tail)
    if not bool((more > 0).any() | ready.any()):
        return None
    at = torch.where(split, state.start + doubtful.to(torch.uint8).argmax(-1), state.end)
    length = torch.minimum(state.length + more, state.origin + growth.most)
    length = torch.where(more > 0, length, state.length)
    layout = Grown(_sources(state, at, more, split, length), length)
    state.relay(layout.source, layout.length)
    new = layout.source == NEW
    state.answer |= new
    state.given = state.given & ~new
    state.masked |= new & ~ready[:, None]
    state.tokens[new] = spec.mask_id
    state.tokens[new & ready[:, None]] = spec.eos_id
    ends = (new & ready[:, None]).nonzero(as_tuple=True)
    state.commit_step[ends] = state.nfe[ends[0]] - 1
    state.sizing &= ~ready
    inside = torch.where(split, more, 0)
    resize_windows(state, settings.rule, settings.block, inside, sizing)
    return layout


def _sources(state: State, at: Tensor, more: Tensor, split: Tensor, length: Tensor) -> Tensor:
    """Where each position of the new canvases comes from: [B, L]."""
    width = max(int(length.max()), state.tokens.shape[-1])
    place = torch.arange(width).expand(len(state), -1)
    first, count = at[:, None], (more + split.long())[:, None]  # a split position is replaced
    new = (place >= first) & (place < first + count)
    source = torch.where(place < first, place, place - more[:, None]).masked_fill(new, NEW)
    return source.masked_fill(place >= length[:, None], NOTHING)
