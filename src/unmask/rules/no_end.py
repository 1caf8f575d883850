"""Keeps end tokens out of the first positions of an answer."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from unmask.errors import require_whole
from unmask.rules.part import Bias, LogitCells
from unmask.rules.registry import register
from unmask.rules.view import Needs
from unmask.rules.words import counted


@register("logits", "no_end", "logit of end tokens -inf before position n", "LESS; min_new_tokens")
@dataclass(frozen=True)
class NoEnd:
    """Never predicts a token that ends the answer in the first `least` positions.

    steps: > 0 allows it again after so many forwards of a window, as LESS does for Dream when it
        fills what is left.
    """

    least: int = 1
    steps: int = 0

    needs = Needs()

    def __post_init__(self) -> None:
        require_whole("no_end: least", self.least, 1)
        require_whole("no_end: steps", self.steps, 0)

    def describe(self) -> str:
        until = f", for {counted(self.steps, 'forward')} of a window" if self.steps else ""
        first = counted(self.least, "position")
        return f"Forbid end tokens in the first {first} of the answer{until}."

    def biased(self, cells: LogitCells) -> Bias:
        tokens = torch.tensor([cells.ends], dtype=torch.int64).expand(len(cells.place), -1)
        early = cells.place < self.least
        early = early & (cells.step < self.steps) if self.steps else early
        bonus = torch.where(early[:, None].expand(tokens.shape), -torch.inf, 0.0)
        return Bias(tokens, bonus.double())
