"""Limits: they add to the positions that a selection chose, or take some of them away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unmask.errors import require_whole
from unmask.rules.registry import register
from unmask.rules.schedules import even_share, steps_per_window
from unmask.rules.select import best_first, best_positions, first_in, leftmost
from unmask.rules.view import Needs, Scores, View


@dataclass(frozen=True)
class _CountLimit:
    """The knobs that both limits have: k positions per step, or the share of a timetable."""

    k: int = 1
    steps: int = 0

    needs = Needs()
    _side: ClassVar[str]  # "least" or "most"

    def __post_init__(self) -> None:
        name = type(self).__name__.lower()
        require_whole(f"{name}: k", self.k, 1)
        require_whole(f"{name}: steps", self.steps, 0)

    def describe(self) -> str:
        if self.steps:
            share = f"the share of one step in a timetable of {self.steps} steps"
            return f"Commit at {self._side} {share}."
        return f"Commit at {self._side} {best_positions(self.k)} per step."


@register("limit", "floor", "the chosen and the k best", "d2Cache; LLaDA2 and vLLM's dllm-plugin")
@dataclass(frozen=True)
class Floor(_CountLimit):
    """Commits at least the k best; with `steps`, at least the even share of LLaDA's timetable."""

    _side = "least"

    def __call__(self, view: View, scores: Scores, chosen: Tensor) -> Tensor:
        count = even_share(self.steps, view.progress) if self.steps else self.k
        return chosen | first_in(best_first(scores.key, view.masked), count, view.masked)


@register("limit", "cap", "the k best of the chosen", "Fast-dLLM's Dream sampler (steps)")
@dataclass(frozen=True)
class Cap(_CountLimit):
    """Commits at most the k best; with `steps`, an even share plus what earlier steps left over."""

    _side = "most"

    def __call__(self, view: View, scores: Scores, chosen: Tensor) -> Tensor:
        order = best_first(scores.key, chosen)
        return first_in(order, self._saved(view) if self.steps else self.k, chosen)

    def _saved(self, view: View) -> Tensor:
        p = view.progress
        steps_here = steps_per_window(self.steps, p)
        left = view.num_left
        allowed = (p.opened // steps_here) * (p.step + 1) - (p.opened - left)
        return torch.where(p.step >= steps_here - 1, left, allowed.clamp_min(1))


@register(
    "limit",
    "lead",
    "the leftmost mask alone in a block's first step",
    "Fast-dLLM's caches on Dream",
)
@dataclass(frozen=True)
class Lead:
    """The first step of a block commits its leftmost mask, and nothing else, at any score.

    Dream reads a token from the output one position earlier. With its first token known, a block
    can be decoded from its own outputs alone, so a cache need not compute the position before it.
    """

    needs = Needs()

    def describe(self) -> str:
        return "In the first step of a block, commit its leftmost mask and nothing else."

    def __call__(self, view: View, scores: Scores, chosen: Tensor) -> Tensor:
        return torch.where((view.progress.step == 0)[:, None], leftmost(view), chosen)
