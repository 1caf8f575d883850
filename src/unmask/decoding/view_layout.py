"""Lays out the statistics of N cells as the View of a rule: B rows, W window positions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.decoding.state import State, Where
from unmask.kernels.common import Stats
from unmask.kernels.reduce import Transform
from unmask.rules.part import LogitCells
from unmask.rules.view import Needs, Progress, View

MOST_REVOCATIONS = 64  # of one position under any rule, so that every row ends


@dataclass(frozen=True)
class CellStats:
    """What one forward says about N cells: [N] each, on the host."""

    where: Where
    raw: Stats  # of the model's own distributions
    scored: Stats  # of the distributions that score
    drift: Tensor | None  # KL since commit, where the rule needs it
    deferred: Tensor | None  # True where the token ends the answer and is to be ranked last
    trail: Tensor | None  # [N, n] the last values of KL(current || previous), newest last
    credit: tuple[Tensor, Tensor] | None  # tokens and their credit after this forward, [N, K] each
    top: tuple[Tensor, Tensor] | None = None  # the likeliest tokens, their probabilities: [N, k]
    ends: Tensor | None = None  # True where the token ends the answer
    changed: Transform | None = None  # from the model's logits to those of the scored distributions


def lay_out(
    state: State,
    window: Tensor,
    candidates: Tensor,
    stats: CellStats,
    draws: Tensor | None,
    needs: Needs,
) -> View:
    """The view of all rows: values of cells outside the windows are left out."""
    rows, positions = stats.where
    width = int((state.stop - state.start).max())
    watched = needs.committed or needs.later_blocks  # cells that are not candidates
    inside = window[stats.where] if watched else slice(None)
    rows, positions = rows[inside], positions[inside]
    shape, cells = (len(state), width), (rows, positions - state.start[rows])

    def lay(*columns: Tensor) -> list[Tensor]:
        """Put values per cell into their places, all columns in one go: [n] -> [B, W] each."""
        table = torch.stack(columns, -1)
        out = table.new_zeros((*shape, table.shape[-1]))
        out[cells] = table
        return list(out.unbind(-1))

    raw, scored = stats.raw, stats.scored
    floats = {
        "confidence": scored.confidence,
        "margin": scored.margin,
        "entropy": scored.entropy,
        "raw_entropy": raw.entropy,
        "kl_prev_cur": raw.kl_prev_cur,
        "kl_cur_prev": raw.kl_cur_prev,
        "js": raw.js,
        "tv": raw.tv,
        "drift": stats.drift,
    }
    columns = {name: column[inside] for name, column in floats.items() if column is not None}
    laid = dict(zip(columns, lay(*columns.values()), strict=True))
    masked, seen = lay(candidates[rows, positions], state.slot[rows, positions] >= 0)
    if not needs.committed:  # nothing is ever taken back
        (token,) = lay(scored.token[inside])
        revocable, revoked_times = torch.zeros_like(masked), torch.zeros_like(token)
    else:
        times = state.revoked_times[rows, positions]
        (revocable,) = lay(state.committed[rows, positions] & (times < MOST_REVOCATIONS))
        token, revoked_times = lay(scored.token[inside], times)
    trail, deferred, ends = stats.trail, stats.deferred, stats.ends
    top = {
        name: torch.stack(lay(*column[inside].unbind(-1)), -1)
        for name, column in zip(("top_tokens", "top_probabilities"), stats.top or (), strict=False)
    }
    return View(
        masked=masked,
        token=token,
        seen=seen,
        trail=None if trail is None else torch.stack(lay(*trail[inside].unbind(-1)), -1),
        draws=draws,
        revocable=revocable,
        revoked_times=revoked_times,
        deferred=None if deferred is None else lay(deferred[inside])[0] & masked,
        ends=None if ends is None else lay(ends[inside])[0],
        memory=state.memory.seen(state.start, state.stop, width),
        progress=progress(state),
        **laid,
        **top,
    )


def logit_cells(state: State, where: Where, raw: Stats, ends: tuple[int, ...]) -> LogitCells:
    """What a logit stage sees of N cells."""
    rows, positions = where
    before = state.tokens[rows, (positions - 1).clamp_min(0)]
    return LogitCells(
        token=raw.token,
        probability=raw.confidence,
        amounts=(state.credit_token[where], state.credit[where]),
        before=torch.where(positions > state.start[rows], before, -1),
        place=positions - state.origin[rows],
        ends=ends,
    )


def progress(state: State) -> Progress:
    """Where each row stands."""
    length = state.end - state.origin
    place = state.origin[:, None] + torch.arange(int(length.max()), device=length.device)  # [B, A]
    fixed = ~state.masked.gather(-1, place.clamp_max(state.masked.shape[-1] - 1))
    return Progress(
        step=state.step.clone(),
        opened=state.opened,
        num_windows=state.num_windows,
        offset=state.start - state.origin,
        known=fixed & (place < state.end[:, None]),
        answer_length=length,
        window=state.windows.clone(),
    )
