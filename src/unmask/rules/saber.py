"""Saber: a bar that follows the confidence of earlier commitments, and backtracking."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import torch
from torch import Tensor

from unmask.errors import require_whole
from unmask.rules.memory import PartMemory
from unmask.rules.part import Standing
from unmask.rules.registry import notation, register
from unmask.rules.rule import Decision
from unmask.rules.select import best_first, best_positions, first_in
from unmask.rules.view import Needs, Scores, View
from unmask.rules.words import beside

LEVEL = PartMemory("saber.level", nan, sequence=True)  # the score at the latest commit


@register(
    "select",
    "saber",
    "{ i : S_i > mean S at commit }, at least the n best",
    "Saber",
    note="Equal to the authors' code in every golden case. Where fewer than n candidates are left, "
    "theirs also takes positions that are none. Published for code, together with `backtrack`; "
    "the figures were not repeated.",
)
@dataclass(frozen=True)
class Saber:
    """Every position whose score is above the mean of all scores at commit; at least the n best.

    A position that is masked again keeps its value in the mean until it is committed anew. Earlier
    blocks stay open.
    """

    n: int = 2

    grid = "{1,2,3,4}"
    needs = Needs(earlier=True)
    memory = (LEVEL,)

    def __post_init__(self) -> None:
        require_whole("saber: n", self.n, 1)

    def describe(self) -> str:
        return (
            "Commit every position whose score is above the mean score of all commitments so far; "
            f"at least {best_positions(self.n)}. Earlier blocks stay open."
        )

    def why(self, at: Standing) -> str:
        bar = at.level("bar")
        return f"under {notation(self)} the bar was {beside(bar, at.score)}, and it was {at.place}"

    def gauge(self, view: View, scores: Scores, chosen: Tensor) -> dict[str, Tensor]:
        """The mean that a score must exceed: [B]."""
        return {"bar": _bar(view)}

    def __call__(self, view: View, scores: Scores) -> Tensor:
        above = view.masked & (scores.value > _bar(view)[:, None])
        best = first_in(best_first(scores.key, view.masked), self.n, view.masked)
        return torch.where((above.sum(-1) < self.n)[:, None], best, above)

    def remember(self, view: View, decision: Decision) -> dict[str, Tensor]:
        level = LEVEL.of(view)
        return {LEVEL.name: torch.where(decision.chosen, decision.scores.value, level)}


def _bar(view: View) -> Tensor:
    """The mean score at commit, 1 before the first commitment: [B]."""
    level = LEVEL.of(view)
    count = (~level.isnan()).sum(-1)
    total = level.nan_to_num(0.0).cumsum(-1)[:, -1]  # one by one: padding changes no bit
    return torch.where(count > 0, total / count.clamp_min(1), 1.0)


@register(
    "revoke",
    "backtrack",
    "the r commitments whose confidence rose least",
    "Saber",
    note="It belongs to `saber`; see there.",
)
@dataclass(frozen=True)
class Backtrack:
    """Masks those commitments again whose confidence has risen least since the last forward.

    It takes back n/2 or an eighth of what this step commits, whichever is more, but fewer than
    this step commits. So every step makes progress.
    """

    n: int = 2

    needs = Needs(fixed=True, earlier=True)
    memory = (PartMemory("backtrack.before", nan, sequence=True),)

    def __post_init__(self) -> None:
        require_whole("backtrack: n", self.n, 1)

    def describe(self) -> str:
        return (
            "Mask the commitments again whose confidence has risen least since the last forward: "
            f"{self.n} / 2 or an eighth of what was committed, fewer than that."
        )

    def why(self) -> str:
        return "its confidence had risen least since the forward before"

    def __call__(self, view: View) -> Tensor:
        before, chosen = self.memory[0].of(view), view.declared("chosen")
        before = torch.where(before.isnan().all(-1, keepdim=True), 0.0, before)  # first forward
        rise = (view.confidence - before).nan_to_num(torch.inf)
        most = chosen.sum(-1)
        wanted = ((most.clamp_min(self.n) + 7) // 8).clamp_min(self.n // 2)
        count = torch.minimum(wanted, most - 1)  # each step must make progress
        left = (view.masked & ~chosen).any(-1)
        fixed = (view.revocable | chosen) & left[:, None]
        return first_in(best_first(-rise, fixed), count, fixed)

    def remember(self, view: View, decision: Decision) -> dict[str, Tensor]:
        computed = view.masked | view.revocable
        return {"backtrack.before": torch.where(computed, view.confidence, self.memory[0].of(view))}
