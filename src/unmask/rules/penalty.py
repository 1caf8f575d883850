"""Lowers the logit of the token that stands one position earlier."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from unmask.errors import require
from unmask.rules.part import Bias, LogitCells
from unmask.rules.registry import register, show
from unmask.rules.view import Needs


@register(
    "logits",
    "penalty",
    "logit of the token before - amount",
    "SGLang's joint threshold, LLaDA2.1",
    note="It belongs to `edit`; see there.",
)
@dataclass(frozen=True)
class Penalty:
    """Lowers the logit of the token one position earlier in the window, so that it is not repeated.

    Score and token come from the changed distribution. The token before may be the mask.
    """

    amount: float = 0.5

    needs = Needs()

    def __post_init__(self) -> None:
        require(
            0 <= self.amount < inf, f"penalty: amount must be >= 0 and finite, got {self.amount}"
        )

    def describe(self) -> str:
        return f"Lower the logit of the token one position earlier by {show(self.amount)}."

    def biased(self, cells: LogitCells) -> Bias:
        before = cells.before[:, None]
        return Bias(before, (before >= 0) * -self.amount)
