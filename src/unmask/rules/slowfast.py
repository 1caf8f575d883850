"""Slow-Fast Sampling: explores a block, then fills the part of it that was stable."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import torch
from torch import Tensor

from unmask.errors import require, require_whole
from unmask.rules.memory import PartMemory
from unmask.rules.part import Standing
from unmask.rules.registry import notation, register, show
from unmask.rules.rule import Decision
from unmask.rules.select import best_first, first_in
from unmask.rules.view import Needs, Scores, View
from unmask.rules.words import beside

_INTO = "slowfast."  # all positions are counted from the block's start
LAST = PartMemory(_INTO + "last", 0, row=True)  # where the cycle begins
END = PartMemory(_INTO + "end", 0, row=True)  # where it ends
ROUND = PartMemory(_INTO + "round", 0, row=True)  # forwards of its exploration so far
SETTLED = PartMemory(_INTO + "settled", False, row=True)  # whether the end is fixed
FAST = PartMemory(_INTO + "fast", False, row=True)  # whether it is being filled
SIGHT = PartMemory(_INTO + "sight", 0, row=True)  # what the next forward sees


@register(
    "select",
    "slowfast",
    "explore `rounds` forwards, then fill the stable part",
    "Slow-Fast",
    note="It commits what the authors' code commits in every golden case, without their forwards "
    "over full blocks. The published speed includes a feature cache, which is no part of it here; "
    "it was not repeated.",
)
@dataclass(frozen=True)
class SlowFast:
    """Explores the block in some forwards, then fills its stable part before it goes on.

    Each forward commits all positions with a score of at least `high` if there are two, else the
    best one. An exploration notes how far scores of at least `reach` go; the stable part ends where
    `window` such notes agree (deviation below `std`), else at their mean. The later forwards that
    fill it do not see what stands after it.
    """

    high: float = 0.9
    rounds: int = 6
    reach: float = 0.3
    window: int = 2
    std: float = 1.0

    grid = "{0.6,0.7,0.8,0.9}"
    needs = Needs()
    sight = SIGHT.name

    def __post_init__(self) -> None:
        require_whole("slowfast: rounds", self.rounds, 1)
        require_whole("slowfast: window", self.window, 1)
        require(self.window <= 1024, f"slowfast: window must be at most 1024, got {self.window}")
        require(self.std >= 0, f"slowfast: std must be >= 0, got {self.std}")

    @property
    def notes(self) -> PartMemory:
        """How far the newest explorations went."""
        return PartMemory(_INTO + "notes", nan, (self.window,), row=True)

    @property
    def memory(self) -> tuple[PartMemory, ...]:
        return LAST, END, ROUND, SETTLED, FAST, SIGHT, self.notes

    def describe(self) -> str:
        phases = f"Explore a block in {self.rounds} forwards, then fill its stable part"
        high = f"all scores of at least {show(self.high)} if there are two"
        return f"{phases}; commit {high}, else the best one."

    def why(self, at: Standing) -> str:
        takes = f"{notation(self)} takes scores of at least {show(self.high)}, or the best"
        return f"{takes}; its score was {beside(at.score, self.high)}"

    def __call__(self, view: View, scores: Scores) -> Tensor:
        return _high_or_best(_open_part(view), scores, self.high)

    def remember(self, view: View, decision: Decision) -> dict[str, Tensor]:
        return {memory.name: value for memory, value in _next_cycle(self, view, decision).items()}


def _open_part(view: View) -> Tensor:
    """The masks of the cycle, up to its end while it is filled; all if it has none: [B, W]."""
    place, fast = torch.arange(view.masked.shape[-1]), FAST.of(view)[:, None]
    part = view.masked & (place >= LAST.of(view)[:, None])
    part &= ~fast | (place < END.of(view)[:, None])
    return torch.where(part.any(-1, keepdim=True), part, view.masked)


def _high_or_best(part: Tensor, scores: Scores, high: float) -> Tensor:
    """All of a part with a high score if there are two, else its best: [B, W] bool."""
    above = part & (scores.value >= high)
    best = first_in(best_first(scores.key, part), 1, part)
    return torch.where((above.sum(-1) >= 2)[:, None], above, best)


def _next_cycle(part: SlowFast, view: View, decision: Decision) -> dict[PartMemory, Tensor]:
    """All memory after a step: the exploration goes on, is over, or its part is filled."""
    fast, last, settled = FAST.of(view), LAST.of(view), SETTLED.of(view)
    notes, length = _noted(part, view, decision.scores)
    mean = notes.nanmean(-1).floor().long()
    agree = ~notes.isnan().any(-1) & (notes.std(-1, correction=0) < part.std)
    end = torch.where(agree, length, mean).clamp_min(1)
    end = torch.where(fast | settled, END.of(view), end)
    explored = ROUND.of(view) + (~fast).long()
    place = torch.arange(view.masked.shape[-1])
    left = view.masked & ~decision.chosen & (place >= last[:, None]) & (place < end[:, None])
    over = (fast | (explored >= part.rounds)) & ~left.any(-1)  # the cycle is filled
    now_fast = (fast | (explored >= part.rounds)) & ~over
    return {
        LAST: torch.where(over, end, last),
        END: end,
        ROUND: torch.where(over, 0, explored),
        SETTLED: (settled | agree) & ~over,
        FAST: now_fast,
        SIGHT: torch.where(fast & now_fast, end, 0),
        part.notes: notes.masked_fill(over[:, None], nan),
    }


def _noted(part: SlowFast, view: View, scores: Scores) -> tuple[Tensor, Tensor]:
    """The notes of this exploration with the newest, and the newest: [B, window], [B]."""
    place, last = torch.arange(view.masked.shape[-1]), LAST.of(view)[:, None]
    far = view.masked & (place >= last) & (scores.value >= part.reach)
    length = torch.where(far, place + 1, last + 1).amax(-1)
    notes = part.notes.of(view)
    newer = torch.cat([notes[:, 1:], length[:, None].double()], -1)
    done = (FAST.of(view) | SETTLED.of(view))[:, None]
    return torch.where(done, notes, newer), length
