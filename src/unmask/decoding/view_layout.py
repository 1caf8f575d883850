"""From cells to windows: what was computed for N cells, laid out as a rule sees it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.decoding.history import Where
from unmask.decoding.state import State
from unmask.kernels.reduce import Stats
from unmask.rules.view import ABSENT, Needs, Progress, View

MOST_REVOCATIONS = 16  # of one position, whatever a rule says: every row ends


@dataclass(frozen=True)
class Found:
    """What one forward told about N cells: [N] each."""

    where: Where
    raw: Stats  # of the model's own distributions
    scored: Stats  # of the distributions that score
    drift: Tensor  # since commit, or ABSENT
    ends: Tensor  # True where the token ends the answer and is to be ranked last, or ABSENT


def lay_out(
    state: State, window: Tensor, candidates: Tensor, found: Found, draws: Tensor, needs: Needs
) -> View:
    """The view of all rows: values of cells outside the windows are left out."""
    rows, positions = found.where
    width = int((state.stop - state.start).max())
    watched = needs.drift is not None or needs.later_blocks  # cells that are no candidates
    inside = window[found.where] if watched else slice(None)
    rows, positions = rows[inside], positions[inside]
    shape, cells = (len(state), width), (rows, positions - state.start[rows])

    def lay(*columns: Tensor) -> list[Tensor]:
        """Put values per cell into their places, all columns in one go: [n] -> [B, W] each."""
        table = torch.stack(columns, -1)
        out = table.new_zeros((*shape, table.shape[-1]))
        out[cells] = table
        return list(out.unbind(-1))

    raw, scored = found.raw, found.scored
    optional = {
        "kl_prev_cur": raw.kl_prev_cur,
        "kl_cur_prev": raw.kl_cur_prev,
        "drift": found.drift,
    }
    given = {name: column for name, column in optional.items() if column is not ABSENT}
    floats = [scored.confidence, scored.margin, scored.entropy, raw.entropy, *given.values()]
    confidence, margin, entropy, raw_entropy, *more = lay(*(column[inside] for column in floats))
    laid = dict(zip(given, more, strict=True))
    masked, seen = lay(candidates[rows, positions], state.slot[rows, positions] >= 0)
    deferred = ABSENT if found.ends is ABSENT else lay(found.ends[inside])[0] & masked
    if needs.drift is None:  # nothing is ever taken back
        (token,) = lay(scored.token[inside])
        revocable, revoked_times = torch.zeros_like(masked), torch.zeros_like(token)
    else:
        times = state.revoked_times[rows, positions]
        held = (state.anchor[rows, positions] >= 0) & (times < MOST_REVOCATIONS)
        (revocable,) = lay(held)
        token, revoked_times = lay(scored.token[inside], times)
    trail = ABSENT
    if needs.trail:
        trail = torch.stack(lay(*state.trail[rows, positions].unbind(-1)), -1)
    return View(
        masked=masked,
        token=token,
        confidence=confidence,
        margin=margin,
        entropy=entropy,
        raw_entropy=raw_entropy,
        seen=seen,
        kl_prev_cur=laid.get("kl_prev_cur", ABSENT),
        kl_cur_prev=laid.get("kl_cur_prev", ABSENT),
        trail=trail,
        draws=draws,
        drift=laid.get("drift", ABSENT),
        revocable=revocable,
        revoked_times=revoked_times,
        deferred=deferred,
        progress=progress(state),
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
    )
