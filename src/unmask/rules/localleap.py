"""LocalLeap: a lower threshold near positions that pass the high one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.errors import require, require_whole
from unmask.rules.part import Standing
from unmask.rules.registry import notation, register, show
from unmask.rules.select import best_one
from unmask.rules.view import Needs, Scores, View
from unmask.rules.words import beside, number


@register(
    "select",
    "localleap",
    "{ i : S_i >= tau, or S_i >= low within r of one that is }, and the best one",
    "LocalLeap, in DAWN's code",
    note="No repository of the authors could be read; the golden cases come from DAWN's copy. The "
    "published speed-ups were not repeated.",
)
@dataclass(frozen=True)
class LocalLeap:
    """Every position with a score of tau, or of low within r positions of one of those.

    A candidate with a score of tau is an anchor; a token that is fixed already is none. The best
    position always goes.
    """

    tau: float = 0.9
    low: float = 0.75
    r: int = 4

    grid = "{0.75,0.8,0.9,0.95}"
    needs = Needs()

    def __post_init__(self) -> None:
        require(self.low <= self.tau, f"localleap: low must be <= tau, got {self.low}")
        require_whole("localleap: r", self.r, 0)

    def describe(self) -> str:
        return (
            f"Commit every position whose score is at least {show(self.tau)}, or at least "
            f"{show(self.low)} within {self.r} positions of such a one, and the best one."
        )

    def why(self, at: Standing) -> str:
        under, score = f"under {notation(self)}", f"its score was {beside(at.score, self.low)}"
        if at.taken and at.rank == 1:
            return f"{under} the best one always goes, and this was it; {score}"
        bars = f"{number(self.tau)}, or {number(self.low)} near a position that has it"
        return f"{under} a score must be at least {bars}; {score}"

    def __call__(self, view: View, scores: Scores) -> Tensor:
        anchors = view.masked & (scores.value >= self.tau)
        places = torch.arange(anchors.shape[-1], device=anchors.device)
        last = torch.where(anchors, places, -self.r - 1).cummax(-1).values  # anchor on the left
        following = torch.where(anchors, places, anchors.shape[-1] + self.r).flip(-1)
        following = following.cummin(-1).values.flip(-1)  # and on the right
        near = (places - last <= self.r) | (following - places <= self.r)
        passing = anchors | (view.masked & near & (scores.value >= self.low))
        return passing | best_one(scores.key, view)
