"""The input of a forward: the canvases of all groups as one batch."""

from __future__ import annotations

import torch
from torch.nn.functional import pad

from unmask.decoding.rows import Rows
from unmask.decoding.state import State
from unmask.models.denoiser import Canvas


def canvas_of(groups: list[Rows]) -> Canvas:
    """The canvases of all groups as one batch, padded on the right."""
    states = [rows.state for rows in groups]
    if len(groups) == 1:
        return _canvas_of_one(groups[0], states[0])
    width = max(state.tokens.shape[-1] for state in states)
    return Canvas(
        tokens=torch.cat([pad(s.tokens, (0, width - s.tokens.shape[-1])) for s in states]),
        lengths=torch.cat([rows.lengths for rows in groups]),
        masked=torch.cat([pad(s.masked, (0, width - s.masked.shape[-1])) for s in states]),
        given=torch.cat([pad(s.given, (0, width - s.given.shape[-1]), value=True) for s in states]),
        start=torch.cat([s.start for s in states]),
        stop=torch.cat([s.stop for s in states]),
        keys=tuple(member.identity for rows in groups for member in rows.members),
        shadow=any(rows.needs.shadow for rows in groups),
        from_start=True,
    )


def _canvas_of_one(rows: Rows, state: State) -> Canvas:
    """The canvas of one group; what a commit writes in place is copied."""
    return Canvas(
        tokens=state.tokens.clone(),
        lengths=rows.lengths,
        masked=state.masked.clone(),
        given=state.given,
        start=state.start,
        stop=state.stop,
        keys=tuple(member.identity for member in rows.members),
        shadow=rows.needs.shadow,
        from_start=True,
    )
