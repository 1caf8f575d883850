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
    """Never predicts a token that ends the answer in the first `least` positions."""

    least: int = 1

    needs = Needs()

    def __post_init__(self) -> None:
        require_whole("no_end: least", self.least, 1)

    def describe(self) -> str:
        return f"Forbid end tokens in the first {counted(self.least, 'position')} of the answer."

    def biased(self, cells: LogitCells) -> Bias:
        tokens = torch.tensor([cells.ends], dtype=torch.int64).expand(len(cells.place), -1)
        early = (cells.place < self.least)[:, None].expand(tokens.shape)
        return Bias(tokens, torch.where(early, -torch.inf, 0.0).double())
