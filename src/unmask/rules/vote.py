"""Temporal voting: a full block gets the tokens that its positions predicted most over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unmask.rules.memory import Edit, PartMemory
from unmask.rules.registry import register
from unmask.rules.rule import Decision
from unmask.rules.view import Needs, View

KEPT = 8  # tokens of a position that may win
TOKENS, VOTES = PartMemory("vote.tokens", -1, (KEPT,)), PartMemory("vote.votes", 0.0, (KEPT,))


@register(
    "revoke",
    "vote",
    "x_i <- the token with most votes of all steps",
    "Time Is a Feature",
    note="Published for whole answers that are read out of each step; this votes by token, so the "
    "published figures say nothing about it.",
)
@dataclass(frozen=True)
class TemporalVote:
    """When a block is full, writes at each position the token that most of its steps predicted.

    Every forward votes with the likeliest token of every position; `weight` says how much: the
    same always (`even`), in proportion to the step (`linear`), or twice as much in each step
    (`double`).
    """

    weight: Literal["even", "linear", "double"] = "linear"

    needs = Needs(fixed=True)
    memory = (TOKENS, VOTES)

    def describe(self) -> str:
        return f"When the block is full, write the tokens with most votes ({self.weight} weights)."

    def why(self) -> str:
        return "another token had more votes of all steps"

    def __call__(self, view: View) -> Edit:
        tokens, votes = _counted(view, self.weight)
        winner = tokens.gather(-1, votes.argmax(-1, keepdim=True))[..., 0]
        full = ~(view.masked & ~view.declared("chosen")).any(-1, keepdim=True)
        now = torch.where(view.masked, view.token, view.declared("standing"))
        other = (winner != now) & (winner >= 0) & (view.revocable | view.declared("chosen"))
        return Edit(torch.zeros_like(other), other & full, winner)

    def remember(self, view: View, decision: Decision) -> dict[str, Tensor]:
        tokens, votes = _counted(view, self.weight)
        return {TOKENS.name: tokens, VOTES.name: votes}


def _counted(view: View, weight: str) -> tuple[Tensor, Tensor]:
    """The votes with those of this forward: [B, W, k] each."""
    tokens, votes, step = TOKENS.of(view), VOTES.of(view), view.progress.step
    votes = votes / 2 if weight == "double" else votes  # the newest always has 1
    new = (step + 1 if weight == "linear" else torch.ones_like(step))[:, None].double()
    same = tokens == view.token[..., None]
    place = torch.where(same.any(-1), same.to(torch.uint8).argmax(-1), votes.argmin(-1))
    place = place[..., None]
    old = torch.where(same.any(-1, keepdim=True), votes.gather(-1, place), 0.0)
    computed = (view.masked | view.revocable)[..., None]
    added = votes.scatter(-1, place, old + new[..., None].expand(old.shape))
    named = tokens.scatter(-1, place, view.token[..., None])
    return torch.where(computed, named, tokens), torch.where(computed, added, votes)
