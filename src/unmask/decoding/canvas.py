"""The input of a forward: the canvases of all groups as one batch."""

from __future__ import annotations

import torch
from torch import Tensor
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
        read=torch.cat([pad(r, (0, width - r.shape[-1])) for r in map(read_of, groups)]),
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
        read=read_of(rows),
    )


def read_of(rows: Rows) -> Tensor:
    """True where a step may read the model's output for a token: [B, L].

    These are the masks of the window. Masks behind it are read too if a step may fill them, or if
    their distributions become the history of the next window; and all tokens from the window on if
    the rule looks at committed ones.
    """
    state, needs, rule = rows.state, rows.needs, rows.settings.rule
    looks_back = rows.declares or needs.committed or rows.settings.growth is not None
    looks_ahead = needs.history or needs.later_blocks or rule.rewrites or rule.revoke is not None
    if not looks_back and not looks_ahead:
        return state.masked & state.window
    behind = state.layout.behind
    return behind if looks_back else state.masked & behind
