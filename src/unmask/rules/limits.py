"""Limits: they add to the positions that a selection chose, or take some of them away."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.errors import require_whole
from unmask.rules.registry import register
from unmask.rules.schedules import even_share, steps_per_window
from unmask.rules.select import best_first, best_positions, first_in
from unmask.rules.view import Needs, Scores, View


@register("limit", "floor", "the chosen and the k best", "d2Cache; LLaDA2 and vLLM's dllm-plugin")
@dataclass(frozen=True)
class Floor:
    """Commits at least the k best; with `steps`, at least the even share of LLaDA's timetable."""

    k: int = 1
    steps: int = 0

    needs = Needs()

    def __post_init__(self) -> None:
        require_whole("floor: k", self.k, 1)
        require_whole("floor: steps", self.steps, 0)

    def describe(self) -> str:
        return _describe(self, "least")

    def __call__(self, view: View, scores: Scores, chosen: Tensor) -> Tensor:
        count = even_share(self.steps, view.progress) if self.steps else self.k
        return chosen | first_in(best_first(scores.key, view.masked), count, view.masked)


@register("limit", "cap", "the k best of the chosen", "Fast-dLLM's Dream sampler (steps)")
@dataclass(frozen=True)
class Cap:
    """Commits at most the k best; with `steps`, an even share plus what earlier steps left over."""

    k: int = 1
    steps: int = 0

    needs = Needs()

    def __post_init__(self) -> None:
        require_whole("cap: k", self.k, 1)
        require_whole("cap: steps", self.steps, 0)

    def describe(self) -> str:
        return _describe(self, "most")

    def __call__(self, view: View, scores: Scores, chosen: Tensor) -> Tensor:
        order = best_first(scores.key, chosen)
        return first_in(order, self._saved(view) if self.steps else self.k, chosen)

    def _saved(self, view: View) -> Tensor:
        p = view.progress
        steps_here = steps_per_window(self.steps, p)
        left = view.masked.sum(-1)
        allowed = (p.opened // steps_here) * (p.step + 1) - (p.opened - left)
        return torch.where(p.step >= steps_here - 1, left, allowed.clamp_min(1))


def _describe(part: Floor | Cap, bound: str) -> str:
    if part.steps:
        return f"Commit at {bound} the share of one step in a timetable of {part.steps} steps."
    return f"Commit at {bound} {best_positions(part.k)} per step."
