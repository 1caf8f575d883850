"""Fast-dLLM's factor rule: a best-first prefix by score and length."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unmask.errors import require
from unmask.rules.part import Standing
from unmask.rules.prefixes import committed, longest_prefix, prefix_gauge
from unmask.rules.registry import notation, register, show
from unmask.rules.select import best_first
from unmask.rules.view import Needs, Scores, View
from unmask.rules.words import number

_LAST = {
    "fair": "",
    "take": " The last candidate is taken even if it fails.",
    "drop": " When all candidates pass, the last one is left out.",
}


@register("select", "factor", "most n with (n + 1)(1 - S_(n)) < f", "Fast-dLLM's factor rule")
@dataclass(frozen=True)
class Factor:
    """The longest best-first prefix in which (n + 1)(1 - S_(n)) stays below f.

    last: the treatment of the last candidate. `fair` is the rule as stated; `take` is Fast-dLLM's
        code (a tie passes, and the last candidate is taken even if it fails); `drop` is d2Cache's
        (when all pass, the last one is left out).
    """

    f: float = 1.0
    last: Literal["fair", "take", "drop"] = "fair"

    grid = "{0.25,0.5,1,1.5,2}"
    needs = Needs()

    def __post_init__(self) -> None:
        require(self.f > 0, f"factor: f must be > 0, got {self.f}")

    def describe(self) -> str:
        return (
            f"Commit the longest best-first run in which (n + 1)(1 - score of the n-th) stays "
            f"below {show(self.f)}; at least one.{_LAST[self.last]}"
        )

    def why(self, at: Standing) -> str:
        return _why_by_cost(f"{notation(self)} {committed(at)}, and this was {at.place}", at)

    def __call__(self, view: View, scores: Scores) -> Tensor:
        order = best_first(scores.key, view.masked)
        n = torch.arange(1, order.shape[-1] + 1, device=order.device)
        final = n == view.masked.sum(-1, keepdim=True)  # [B, W], the last candidate
        if self.last == "take":
            within = (scores.value.gather(-1, order) >= 1 - self.f / (n + 1)) | final
        else:
            within = _cost(scores, order) < self.f
            within &= ~final if self.last == "drop" else True
        return longest_prefix(within, order, view.masked)

    def gauge(self, view: View, scores: Scores, chosen: Tensor) -> dict[str, Tensor]:
        """What the prefix and the next position cost, for traces: [B] each."""
        running = _cost(scores, best_first(scores.key, view.masked))
        return prefix_gauge(running, view, chosen)


def _cost(scores: Scores, order: Tensor) -> Tensor:
    """(n + 1)(1 - S_(n)) in this order: [B, W]."""
    n = torch.arange(1, order.shape[-1] + 1, device=order.device)
    return (n + 1) * (1 - scores.value.gather(-1, order))


def _why_by_cost(front: str, at: Standing) -> str:
    following, cost = at.level("next"), "(n + 1)(1 - score)"
    after = "" if math.isnan(following) else f"; at the next one it is {number(following)}"
    if at.taken:
        return f"{front}; {cost} at the last of them is {number(at.level('spent'))}{after}"
    return f"{front}{after}, by {cost}"
