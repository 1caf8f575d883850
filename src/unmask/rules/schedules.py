"""Selections that follow a timetable: each step commits a planned share of the masks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from unmask.errors import require, require_whole
from unmask.rules.part import Standing
from unmask.rules.registry import notation, register
from unmask.rules.select import best_first, first_in
from unmask.rules.view import Needs, Progress, Scores, View
from unmask.rules.words import counted


def steps_per_window(steps: int, progress: Progress) -> Tensor:
    """The row's steps shared equally by its blocks, at least one each: [B]."""
    return (steps // progress.num_windows).clamp_min(1)


def even_share(steps: int, progress: Progress) -> Tensor:
    """LLaDA's timetable: masks // steps per step, and one more in each of the first steps: [B].

    After the last step (where masks were taken back) it is everything that is left.
    """
    steps_here = steps_per_window(steps, progress)
    share = progress.opened // steps_here
    share += (progress.step < progress.opened % steps_here).long()
    late = progress.step >= steps_here
    return torch.where(late, progress.opened, share.clamp_min(1))


class Timetable:
    """Selects as many of the best positions as `_count`, [B], gives to this step."""

    grid = "{8,16,32,64,128,256}"
    adaptive = False
    needs = Needs()

    def __call__(self, view: View, scores: Scores) -> Tensor:
        return first_in(best_first(scores.key, view.masked), self._count(view), view.masked)

    def gauge(self, view: View, scores: Scores, chosen: Tensor) -> dict[str, Tensor]:
        """How many positions the timetable gives to this step: [B]."""
        return {"share": self._count(view)}

    def why(self, at: Standing) -> str:
        share = int(at.level("share"))
        planned = counted(share, "position") if share else "no positions"
        return f"{notation(self)} gave {planned} to this step, and it was {at.place}"

    def _count(self, view: View) -> Tensor:
        raise NotImplementedError


@register("select", "static", "the k_t best, k_t an even share of the masks", "LLaDA's generate.py")
@dataclass(frozen=True)
class Static(Timetable):
    """LLaDA's fixed timetable: `steps` forwards over all blocks, an even share of masks in each."""

    steps: int = 256

    def __post_init__(self) -> None:
        require_whole("static: steps", self.steps, 1)

    def describe(self) -> str:
        return f"Commit an even share of the masks in each of {self.steps} steps (over all blocks)."

    def _count(self, view: View) -> Tensor:
        return even_share(self.steps, view.progress)


@register(
    "select",
    "timesteps",
    "the floor(m (1 - s/t)) best, s/t from linspace(1, eps)",
    "Dream's _sample",
)
@dataclass(frozen=True)
class Timesteps(Timetable):
    """Dream's timetable: a share 1 - s/t of the masks that are left; in the last step all.

    Computed in float32 as in Dream: with as many steps as masks, the first step commits nothing
    and the last one commits two.
    """

    steps: int = 512
    eps: float = 0.001

    waits = True

    def __post_init__(self) -> None:
        _check_timesteps("timesteps", self.steps, self.eps)

    def describe(self) -> str:
        return f"Commit the share that Dream's {self.steps} timesteps ask for."

    def _count(self, view: View) -> Tensor:
        share, last = _share(self.steps, self.eps, view.progress)
        left = view.num_left
        return torch.where(last, left, (left.float() * share).long())


@register("select", "origin", "each with probability 1 - s/t", "Dream's alg='origin'")
@dataclass(frozen=True)
class Origin:
    """Dream's random order: each mask with probability 1 - s/t; in the last step all."""

    steps: int = 512
    eps: float = 0.001

    grid = "{8,16,32,64,128,256}"
    adaptive = False
    waits = True
    needs = Needs(draws=True)

    def __post_init__(self) -> None:
        _check_timesteps("origin", self.steps, self.eps)

    def describe(self) -> str:
        return f"Commit at random, the share that Dream's {self.steps} timesteps ask for."

    def why(self, at: Standing) -> str:
        drawn = "drawn" if at.taken else "not drawn"
        return f"{notation(self)} draws positions at random, and it was {drawn}"

    def __call__(self, view: View, scores: Scores) -> Tensor:
        share, last = _share(self.steps, self.eps, view.progress)
        return ((view.declared("draws") < share[:, None].double()) | last[:, None]) & view.masked


def _check_timesteps(name: str, steps: int, eps: float) -> None:
    require_whole(f"{name}: steps", steps, 1)
    require(0 <= eps < 1, f"{name}: eps must be in [0, 1), got {eps}")


def _share(steps: int, eps: float, progress: Progress) -> tuple[Tensor, Tensor]:
    """1 - s/t of this step, float32, and whether it is the last step: [B] each."""
    steps_here = steps_per_window(steps, progress)
    shares = [
        _shares(count, eps)[min(step, count - 1)]
        for count, step in zip(steps_here.tolist(), progress.step.tolist(), strict=True)
    ]
    share = torch.tensor(shares, dtype=torch.float32, device=progress.step.device)
    return share, progress.step >= steps_here - 1


@lru_cache(maxsize=64)
def _shares(steps: int, eps: float) -> list[float]:
    t = torch.linspace(1, eps, steps + 1, dtype=torch.float32)
    result: list[float] = (1 - t[1:] / t[:-1]).tolist()
    return result
