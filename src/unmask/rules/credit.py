"""CreditDecoding: tokens that were predicted before get credit, fused into the logits."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor
from torch.nn.functional import pad

from unmask.decoding.state import State
from unmask.errors import require
from unmask.kernels.reduce import Stats, Transform
from unmask.models.denoiser import ship
from unmask.rules.registry import register
from unmask.rules.view import Needs


@register(
    "logits",
    "credit",
    "logits + alpha log(1 + C); C <- beta C, then C[argmax] += max(p)^gamma",
    "CreditDecoding, in dInfer's code",
)
@dataclass(frozen=True)
class Credit:
    """Fuses into the logits how often, how lately and how surely a token was predicted.

    Score and token come from the fused distribution, instability and budgets from the model's
    own. The credit starts anew in every block.
    """

    alpha: float = 0.65
    beta: float = 0.7
    gamma: float = 0.65

    needs = Needs()

    def __post_init__(self) -> None:
        require(0 <= self.alpha < inf, f"credit: alpha must be >= 0 and finite, got {self.alpha}")
        require(0 <= self.beta <= 1, f"credit: beta must be in [0, 1], got {self.beta}")
        require(0 <= self.gamma < inf, f"credit: gamma must be >= 0 and finite, got {self.gamma}")


def add_credit(part: Credit, state: State, where: tuple[Tensor, Tensor], stats: Stats) -> None:
    """One step: decay the credit of these positions, then credit each one's likeliest token.

    Few tokens ever have credit, so it is kept in K slots per position: [B, L, K].
    """
    token, p = stats.token[:, None], stats.confidence[:, None]  # [N, 1]
    held, amount = state.credit_token[where], state.credit[where] * part.beta  # [N, K]
    if bool(((held != token) & (held >= 0)).all(-1).any()):  # no slot is free: one more each
        state.credit_token, held = (pad(t, (0, 1), value=-1) for t in (state.credit_token, held))
        state.credit, amount = (pad(t, (0, 1)) for t in (state.credit, amount))
    usable = (held == token) | ((held < 0) & ~(held == token).any(-1, keepdim=True))
    slot = usable.to(torch.uint8).argmax(-1, keepdim=True)  # its own, else the first free one
    state.credit_token[where] = held.scatter(-1, slot, token)
    state.credit[where] = amount.scatter_add(-1, slot, p**part.gamma)


def credit_boost(
    part: Credit, state: State, where: tuple[Tensor, Tensor], device: torch.device
) -> Transform:
    """Adds the credit of these positions to a chunk of their logits, which lie on a device."""
    ids = ship(state.credit_token[where].clamp_min(0), device)  # [N, K]
    amount = ship(part.alpha * state.credit[where].log1p(), device)

    def boost(z: Tensor, first: int) -> Tensor:
        rows = slice(first, first + len(z))
        return z.scatter_add(-1, ids[rows], amount[rows].to(z.dtype))

    return boost
