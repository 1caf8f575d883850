"""The statistics that score: of the model's distribution as sampling, credit and EOS change it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from unmask.decoding.history import Where
from unmask.decoding.request import Settings
from unmask.decoding.sampling import Sampling, gumbel_max
from unmask.decoding.state import State
from unmask.kernels.reduce import Stats, Transform, chunks, reduce, working_dtype
from unmask.models.denoiser import ModelSpec, ship
from unmask.rules.part import LogitStage


def scored(
    logits: Tensor,
    raw: Stats,
    state: State,
    where: Where,
    settings: Settings,
    spec: ModelSpec,
    generators: list[torch.Generator],
) -> Stats:
    """Token, confidence, margin and entropy as the score sees them: N cells."""
    sampling, credit = settings.sampling, settings.rule.logits
    transform: Transform | None = None
    if credit is not None:  # it lives on the host: one more wait for a GPU
        _update_credit(credit, state, where, raw.on_host())
        transform = _credit_boost(credit, state, where, logits.device)
    tokens = None
    if sampling.draws:
        tokens = _draw(logits, transform, sampling, [generators[row] for row in where[0].tolist()])
    if sampling.tempered:
        transform = _then(transform, lambda z, first: sampling.temper(z))
    if settings.eos == "last":
        if tokens is None:
            tokens = raw.token if transform is None else reduce(logits, transform=transform).token
        ends = torch.tensor(spec.stop_ids, device=logits.device)
        transform = _then(transform, lambda z, first: z.index_fill(-1, ends, -torch.inf))
    if transform is None and tokens is None:
        return raw
    return reduce(logits, transform=transform, tokens=tokens)


def _update_credit(credit: LogitStage, state: State, where: Where, stats: Stats) -> None:
    """Write the credit of these cells after this step; widen the state where a slot is missing."""
    held, amounts = state.credit_token[where], state.credit[where]  # [N, K]
    held, amounts = credit.updated(held, amounts, stats.token, stats.confidence)
    missing = (0, held.shape[-1] - state.credit.shape[-1])
    if missing[1]:
        state.credit_token = pad(state.credit_token, missing, value=-1)
        state.credit = pad(state.credit, missing)
    state.credit_token[where], state.credit[where] = held, amounts


def _credit_boost(
    credit: LogitStage, state: State, where: Where, device: torch.device
) -> Transform:
    """Adds the credit of these cells to a chunk of their logits, which lie on a device."""
    tokens = ship(state.credit_token[where].clamp_min(0), device)  # [N, K]
    bonus = ship(credit.bonus(state.credit[where]), device)

    def boost(z: Tensor, first: int) -> Tensor:
        rows = slice(first, first + len(z))
        return z.scatter_add(-1, tokens[rows], bonus[rows].to(z.dtype))

    return boost


def _draw(
    logits: Tensor,
    transform: Transform | None,
    sampling: Sampling,
    generators: list[torch.Generator],
) -> Tensor:
    """One random token per cell, each from the generator of its row: [N]."""
    drawn = []
    for rows in chunks(logits):
        z = logits[rows].to(working_dtype(logits))
        z = sampling.temper(transform(z, rows.start) if transform else z)
        noise = [
            torch.rand(z.shape[-1], dtype=torch.float64, generator=generator)
            for generator in generators[rows]
        ]
        drawn.append(gumbel_max(z, ship(torch.stack(noise), z.device)))
    return torch.cat(drawn)


def _then(first: Transform | None, second: Transform) -> Transform:
    """One change of the logits after another."""
    return second if first is None else lambda z, row: second(first(z, row), row)
