"""Lays out the statistics of N cells as the View of a rule: B rows, W window positions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.decoding.state import Layout, State, Where
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
    seen: Tensor  # True where a distribution exactly one forward old exists
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
    (rows, positions), width = stats.where, state.layout.width
    watched = needs.committed or needs.later_blocks  # cells that are not candidates
    inside = window[stats.where] if watched else None
    if inside is not None:
        rows, positions = rows[inside], positions[inside]
    shape = (len(state), width)
    index = positions - (state.start if shape[0] == 1 else state.start[rows] - rows * width)

    def lay(*columns: Tensor) -> tuple[Tensor, ...]:
        """Put values per cell into their places, all columns in one go: [n] -> [B, W] each."""
        table = torch.stack(columns)
        table = table if inside is None else table[:, inside]
        out = table.new_zeros(len(columns), shape[0] * width).index_copy_(1, index, table)
        return out.view(-1, *shape).unbind()

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
    columns = {name: column for name, column in floats.items() if column is not None}
    token, seen = scored.token, stats.seen
    masked = candidates[stats.where] if watched else torch.ones_like(seen)
    whole = (column.double() for column in (masked, seen, token))
    *values, masked, seen, token = lay(*columns.values(), *whole)
    laid = dict(zip(columns, values, strict=True))
    masked, seen, token = masked.bool(), seen.bool(), token.long()
    revocable, revoked_times = torch.zeros_like(masked), torch.zeros_like(token)
    if needs.committed:
        times = state.revoked_times[stats.where]
        (revoked_times,) = lay(times)
        (revocable,) = lay(state.committed[stats.where] & (times < MOST_REVOCATIONS))
    trail, deferred, ends = stats.trail, stats.deferred, stats.ends
    top = {
        name: torch.stack(lay(*column.unbind(-1)), -1)
        for name, column in zip(("top_tokens", "top_probabilities"), stats.top or (), strict=False)
    }
    return View(
        masked=masked,
        token=token,
        seen=seen,
        trail=None if trail is None else torch.stack(lay(*trail.unbind(-1)), -1),
        draws=draws,
        revocable=revocable,
        revoked_times=revoked_times,
        deferred=None if deferred is None else lay(deferred)[0] & masked,
        ends=None if ends is None else lay(ends)[0],
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
        step=state.step[rows],
        ends=ends,
    )


def progress(state: State) -> Progress:
    """Where each row stands."""
    layout = state.layout
    return Progress(
        step=state.step,
        opened=state.opened,
        num_windows=state.num_windows,
        offset=layout.offset,
        known=_known(state, layout),
        answer_length=layout.answer_length,
        window=state.windows,
    )


def _known(state: State, layout: Layout) -> Tensor:
    """True where the answer is fixed: [B, A]."""
    if layout.answer is not None:
        return ~state.masked[:, slice(*layout.answer)]
    longest = int(layout.answer_length.max())
    place = state.origin[:, None] + torch.arange(longest, device=state.end.device)  # [B, A]
    fixed = ~state.masked.gather(-1, place.clamp_max(state.masked.shape[-1] - 1))
    return fixed & (place < state.end[:, None])
