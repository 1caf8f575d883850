"""Predicts: the logits of the cells that a step needs, and their statistics."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from unmask.decoding.constrain import Constraint, LanguageCells, window_cells
from unmask.decoding.eos import is_stop
from unmask.decoding.finite import why_no_token
from unmask.decoding.fitting import JointDraw, filled
from unmask.decoding.sampling import adding, draw, likeliest, scored
from unmask.decoding.state import Where
from unmask.decoding.view_layout import CellStats, logit_cells
from unmask.errors import ModelError, RuleError
from unmask.kernels.common import Stats, on_host
from unmask.kernels.reduce import Transform, reduce
from unmask.models.denoiser import Hidden
from unmask.rules.registry import spelled

if TYPE_CHECKING:
    from unmask.decoding.rows import Rows


def head(group: Rows, hidden: Hidden, first: int, where: Where) -> Tensor:
    """Logits of these cells, suppressed tokens at -inf: [N, V]."""
    rows, positions = where
    logits = group.model.head(hidden, rows + first if first else rows, positions)
    for token in group.suppressed:
        logits[:, token].fill_(-torch.inf)
    return logits


def reduced(group: Rows, logits: Tensor, where: Where) -> CellStats:
    """One pass over the logits, and one more where another distribution scores."""
    state, needs, sampling = group.state, group.needs, group.settings.sampling
    slot = state.slot[where]
    previous = group.history.previous(slot)
    raw = group.reducer(logits, previous, needs.directions, needs.uniform_start)
    stage, boost, amounts = group.settings.rule.logits, None, None
    if stage is not None:  # it works on the host: one more wait for a GPU
        bias = stage.biased(logit_cells(state, where, raw.on_host(), group.spec.stop_ids))
        boost, amounts = adding(bias.tokens, bias.bonus, logits.device), bias.amounts
    known, tokens = raw if boost is None else None, drawn(group, logits, where, boost)
    if group.constraint is not None:
        cells = window_cells(group, logits, where)
        raw, known, boost = constrained(group.constraint, cells, raw, boost)
    score = scored(logits, known, sampling, boost, group.eos.last, tokens)
    drift = group.history.drift(state, where, logits, needs.drift) if needs.drift else None
    top = None
    if needs.top:
        best = known or reduce(logits, transform=boost)
        top = likeliest(logits, best.confidence, boost, needs.top)
    raw, score, drift = _on_host(raw, score, drift)
    trail = _trail(group, raw, where) if needs.trail else None
    ends = is_stop(score.token, group.spec.stop_ids) if needs.ends else None
    deferred = group.eos.deferred(score.token)
    seen = slot >= 0
    return CellStats(where, raw, score, seen, drift, deferred, trail, amounts, top, ends, boost)


def check_finite(group: Rows, stats: CellStats, hidden: Hidden, first: int) -> None:
    """Raise if the model gave no usable logits for a cell."""
    total = stats.raw.confidence.sum()  # NaN if one of them is
    if stats.scored is not stats.raw:
        total = total + stats.scored.confidence.sum()
    if isnan(float(total)):
        broken = (stats.raw.confidence.isnan() | stats.scored.confidence.isnan()).nonzero()
        row, position = (index[broken[0]] for index in stats.where)
        logits = group.model.head(hidden, row + first, position)[0]
        where = (
            f"at step {int(group.state.nfe[row])}, position {int(position)} of request "
            f"{group.keys[int(row)]}"
        )
        if not bool(stats.raw.confidence[broken[0]].isnan()):
            stage = spelled(group.settings.rule.logits)
            raise RuleError(f"{stage} leaves no token that can be written {where}")
        reason = why_no_token(logits, group.spec, group.suppressed, where)
        if group.constraint is not None and bool(logits.isfinite().any()):
            reason = f"only -inf logits to what {group.constraint.automaton.title} allows {where}"
        raise ModelError(f"{group.spec.name} gave {reason}")


def drawn(group: Rows, logits: Tensor, where: Where, boost: Transform | None) -> Tensor | None:
    """Random tokens of these cells; None where tokens are greedy: [N]."""
    sampling, generators = group.settings.sampling, group.generators
    if not sampling.draws:
        return None
    if group.constraint is not None:
        return JointDraw(group.constraint, window_cells(group, logits, where), boost)()
    return draw(logits, boost, sampling, [generators[row] for row in where[0].tolist()])


def drawn_tokens(group: Rows, logits: Tensor, where: Where) -> Tensor:
    """The tokens that these logits write, on the host: [N]."""
    if group.constraint is not None:
        every = np.ones(len(logits), dtype=bool)
        return filled(group.constraint, LanguageCells(group, where, logits, every)).cpu()
    tokens = drawn(group, logits, where, None)
    stats = scored(logits, None, group.settings.sampling, None, group.eos.last, tokens)
    return stats.token.cpu()


def constrained(
    constraint: Constraint, cells: LanguageCells, raw: Stats, boost: Transform | None
) -> tuple[Stats, Stats | None, Transform]:
    """Statistics of the model's marginals, those of what scores if known, and its transform.

    The divergences stay those of the model's own distributions.
    """
    narrow = constraint.marginals(cells, None)
    own = reduce(cells.logits, transform=narrow)
    raw = replace(
        raw, token=own.token, confidence=own.confidence, margin=own.margin, entropy=own.entropy
    )
    if boost is None:
        return raw, raw, narrow
    return raw, None, constraint.marginals(cells, boost)


def _trail(group: Rows, raw: Stats, where: Where) -> Tensor:
    """The last values of KL(current || previous) with this forward's; +inf without: [N, n]."""
    assert raw.kl_cur_prev is not None
    newest = torch.where(group.state.slot[where] >= 0, raw.kl_cur_prev, torch.inf)
    return torch.cat([group.state.trail[where][:, 1:], newest[:, None]], -1)


def _on_host(raw: Stats, score: Stats, drift: Tensor | None) -> tuple[Stats, Stats, Tensor | None]:
    """The numbers that a decision is made of, brought to the host together."""
    if raw.token.device.type == "cpu":  # so are the others
        return raw, score, drift
    first, second = list(vars(raw).values()), [] if score is raw else list(vars(score).values())
    *columns, drift = on_host([*first, *second, drift])
    here = Stats(*columns[: len(first)])
    return here, Stats(*columns[len(first) :]) if second else here, drift
