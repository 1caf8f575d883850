"""CreditDecoding: adds credit to the logits of tokens that were predicted in earlier steps."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor
from torch.nn.functional import pad

from unmask.errors import require
from unmask.rules.part import Bias, LogitCells
from unmask.rules.registry import register, show
from unmask.rules.view import Needs


@register(
    "logits",
    "credit",
    "logits + alpha log(1 + C); C <- beta C, then C[argmax] += max(p)^gamma",
    "CreditDecoding, in dInfer's code",
)
@dataclass(frozen=True)
class Credit:
    """Adds to the logits of a token the credit of its earlier predictions in the block.

    Score and token come from the changed distribution, instability and budgets from the model's
    own. The credit is 0 at the start of every block.
    """

    alpha: float = 0.65
    beta: float = 0.7
    gamma: float = 0.65

    needs = Needs()

    def __post_init__(self) -> None:
        require(0 <= self.alpha < inf, f"credit: alpha must be >= 0 and finite, got {self.alpha}")
        require(0 <= self.beta <= 1, f"credit: beta must be in [0, 1], got {self.beta}")
        require(0 <= self.gamma < inf, f"credit: gamma must be >= 0 and finite, got {self.gamma}")

    def describe(self) -> str:
        return (
            f"Add {show(self.alpha)} log(1 + C) to the logits. C is the credit of a token: its "
            f"probability to the power {show(self.gamma)} for each step in which it is the "
            f"likeliest; C is multiplied by {show(self.beta)} per step and is 0 in a new block."
        )

    def biased(self, cells: LogitCells) -> Bias:
        tokens, amounts = cells.amounts
        gained = cells.probability**self.gamma
        tokens, amounts = _credited(tokens, amounts * self.beta, cells.token, gained)
        return Bias(tokens, self.bonus(amounts), (tokens, amounts))

    def bonus(self, amounts: Tensor) -> Tensor:
        """What these amounts of credit add to the logits of their tokens: alpha log(1 + C)."""
        return self.alpha * amounts.log1p()


def _credited(
    tokens: Tensor, amounts: Tensor, token: Tensor, gained: Tensor
) -> tuple[Tensor, Tensor]:
    """The credit of N positions after each one's likeliest token has gained some.

    Few tokens ever have credit, so a position keeps them in K slots, -1 where one is free:
    [N, K] each, and one slot more where a position has no free one. The others are [N].
    """
    token = token[:, None]  # [N, 1]
    if bool(((tokens != token) & (tokens >= 0)).all(-1).any()):  # no slot is free
        tokens, amounts = pad(tokens, (0, 1), value=-1), pad(amounts, (0, 1))
    usable = (tokens == token) | ((tokens < 0) & ~(tokens == token).any(-1, keepdim=True))
    slot = usable.to(torch.uint8).argmax(-1, keepdim=True)  # its own, else the first free one
    return tokens.scatter(-1, slot, token), amounts.scatter_add(-1, slot, gained[:, None])
