"""Predicts: the logits of the cells that a step needs, and their statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unmask.decoding.eos import is_stop
from unmask.decoding.finite import why_no_token
from unmask.decoding.sampling import adding, likeliest, scored
from unmask.decoding.state import Where
from unmask.decoding.view_layout import CellStats, logit_cells
from unmask.errors import ModelError
from unmask.kernels.common import Stats, on_host
from unmask.kernels.reduce import reduce
from unmask.models.denoiser import Hidden

if TYPE_CHECKING:
    from unmask.decoding.rows import Rows


def head(group: Rows, hidden: Hidden, first: int, where: Where) -> Tensor:
    """Logits of these cells, suppressed tokens at -inf: [N, V]."""
    rows, positions = where
    logits = group.model.head(hidden, rows + first, positions)
    for token in group.suppressed:
        logits[:, token] = -torch.inf
    return logits


def reduced(group: Rows, logits: Tensor, where: Where) -> CellStats:
    """One pass over the logits, and one more where another distribution scores."""
    state, needs, sampling = group.state, group.needs, group.settings.sampling
    previous = group.history.previous(state, where)
    raw = group.reducer(logits, previous, needs.directions, needs.uniform_start)
    stage, boost, amounts = group.settings.rule.logits, None, None
    if stage is not None:  # it works on the host: one more wait for a GPU
        bias = stage.biased(logit_cells(state, where, raw.on_host(), group.spec.stop_ids))
        boost, amounts = adding(bias.tokens, bias.bonus, logits.device), bias.amounts
    drawn, generators = where[0].tolist() if sampling.draws else [], group.generators
    own = [generators[row] for row in drawn]
    score = scored(logits, raw, sampling, boost, group.eos.last, own)
    drift = group.history.drift(state, where, logits, needs.drift) if needs.drift else None
    top = None
    if needs.top:
        best = reduce(logits, transform=boost) if boost else raw
        top = likeliest(logits, best.confidence, boost, needs.top)
    raw, score, drift = _on_host(raw, score, drift)
    trail = _trail(group, raw, where) if needs.trail else None
    ends = is_stop(score.token, group.spec.stop_ids) if needs.ends else None
    deferred = group.eos.deferred(score.token)
    return CellStats(where, raw, score, drift, deferred, trail, amounts, top, ends)


def check_finite(group: Rows, stats: CellStats, hidden: Hidden, first: int) -> None:
    """Raise if the model gave no usable logits for a cell."""
    broken = stats.raw.confidence.isnan().nonzero()
    if len(broken):
        row, position = (index[broken[0]] for index in stats.where)
        logits = group.model.head(hidden, row + first, position)[0]
        where = (
            f"at step {int(group.state.nfe[row])}, position {int(position)} of request "
            f"{group.keys[int(row)]}"
        )
        reason = why_no_token(logits, group.spec, group.suppressed, where)
        raise ModelError(f"{group.spec.name} gave {reason}")


def drawn_tokens(group: Rows, logits: Tensor, where: Where) -> Tensor:
    """The tokens that these logits write, on the host: [N]."""
    sampling, generators = group.settings.sampling, group.generators
    own = [generators[row] for row in where[0].tolist()] if sampling.draws else []
    return scored(logits, reduce(logits), sampling, None, group.eos.last, own).token.cpu()


def _trail(group: Rows, raw: Stats, where: Where) -> Tensor:
    """The last values of KL(current || previous) with this forward's; +inf without: [N, n]."""
    assert raw.kl_cur_prev is not None
    newest = torch.where(group.state.slot[where] >= 0, raw.kl_cur_prev, torch.inf)
    return torch.cat([group.state.trail[where][:, 1:], newest[:, None]], -1)


def _on_host(raw: Stats, score: Stats, drift: Tensor | None) -> tuple[Stats, Stats, Tensor | None]:
    """The numbers that a decision is made of, brought to the host together."""
    first, second = list(vars(raw).values()), [] if score is raw else list(vars(score).values())
    *columns, drift = on_host([*first, *second, drift])
    here = Stats(*columns[: len(first)])
    return here, Stats(*columns[len(first) :]) if second else here, drift
