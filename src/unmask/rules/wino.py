"""WINO: commits wide, then masks again what a second look does not support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unmask.errors import RuleError, require
from unmask.rules.memory import PartMemory
from unmask.rules.part import Standing
from unmask.rules.registry import notation, register, show
from unmask.rules.rule import Decision
from unmask.rules.select import best_first, first_in
from unmask.rules.view import Needs, Scores, View
from unmask.rules.words import beside

if TYPE_CHECKING:
    from unmask.models.denoiser import ModelSpec


@register(
    "select",
    "wino",
    "{ i : S_i > tau }, at most 5 to 20; else the best one",
    "WINO",
    note="With `narrow` equal to the authors' code in every golden case. The published figures "
    "were not repeated.",
)
@dataclass(frozen=True)
class WideIn:
    """Every position whose score is above tau, but at most 70% of the masks: from 5 to 20."""

    tau: float = 0.6

    grid = "{0.5,0.6,0.7,0.8,0.9}"
    needs = Needs()

    def __post_init__(self) -> None:
        require(self.tau == self.tau, "wino: tau must be a number, got nan")

    def describe(self) -> str:
        return (
            f"Commit every position whose score is above {show(self.tau)}, at most 70% of the "
            "masks (but 5, and never more than 20); if there is none, the best one."
        )

    def why(self, at: Standing) -> str:
        score = f"its score was {beside(at.score, self.tau)}"
        return f"{notation(self)} takes the best above {show(self.tau)}; {score}, {at.place}"

    def __call__(self, view: View, scores: Scores) -> Tensor:
        above = view.masked & (scores.value > self.tau)
        cap = (view.masked.sum(-1) * 7 // 10).clamp(5, 20)
        best = first_in(best_first(scores.key, view.masked), 1, view.masked)
        wide = first_in(best_first(scores.key, above), cap, above)
        return torch.where(above.any(-1, keepdim=True), wide, best)


@register(
    "revoke",
    "narrow",
    "{ i : p(x_i) < tau without attention to x_i }, fewer than were committed",
    "WINO",
    note="It belongs to `wino`; see there.",
)
@dataclass(frozen=True)
class NarrowOut:
    """Masks tokens again that have less than tau by a mask that does not attend to them.

    It does so in steps that commit more than one position. It takes back fewer than the step
    before committed (30 at first), so a block comes to an end. The model must support shadows.
    """

    tau: float = 0.9

    needs = Needs(shadow=True)
    memory = (PartMemory("narrow.last", 30, row=True),)

    def __post_init__(self) -> None:
        require(self.tau == self.tau, "narrow: tau must be a number, got nan")

    def describe(self) -> str:
        return (
            f"After a step with several commitments, mask earlier tokens of the block again that "
            f"have less than {show(self.tau)} by a mask that does not attend to them."
        )

    def why(self) -> str:
        return f"a mask that does not attend to it gave it less than {show(self.tau)}"

    def check_model(self, spec: ModelSpec) -> None:
        if not spec.shadows:
            raise RuleError(
                f"narrow needs shadow positions, and {spec.name} cannot compute them (a cache, "
                "guidance, shifted or block-causal models cannot); leave narrow out"
            )

    def __call__(self, view: View) -> Tensor:
        shadow, last = view.declared("shadow"), self.memory[0].of(view)
        several = (view.declared("chosen").sum(-1) > 1)[:, None]
        doubtful = view.revocable & several & (shadow < self.tau)
        lowest = first_in(best_first(-shadow, doubtful), last - 1, doubtful)
        return torch.where((doubtful.sum(-1) >= last)[:, None], lowest, doubtful)

    def remember(self, view: View, decision: Decision) -> dict[str, Tensor]:
        count = decision.chosen.sum(-1)
        return {"narrow.last": torch.where(count > 0, count, self.memory[0].of(view))}
