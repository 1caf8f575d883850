"""RPD's cumulative-entropy gate: a position waits for uncertain masks on its left."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.errors import require, require_whole
from unmask.rules.frontier import Unit, from_left
from unmask.rules.registry import notation, register, show
from unmask.rules.select import best_one
from unmask.rules.view import Needs, Scores, View


@register(
    "limit",
    "upstream",
    "{ i chosen : sum of H_j over masks j < i that stay <= beta }",
    "RPD's gate CE, arXiv 2609.36452",
    note="Paper and code of RPD differ: `window` counts masks in the paper, positions in the code. "
    "RPD's other gate reads the layers of the model and is not offered. Its figures were not "
    "repeated.",
)
@dataclass(frozen=True)
class Upstream:
    """Keeps a chosen position only if the masks on its left that stay have little entropy.

    Their entropies, of the model's own distribution, add up to at most beta nats. If nothing is
    kept, the best of the first `window` masks goes; it also goes where the selection itself takes
    the best one because nothing passes.
    unit: `masks` counts the window in masks, `positions` in positions.
    """

    beta: float = 4.0
    window: int = 32
    unit: Unit = "masks"

    needs = Needs()

    def __post_init__(self) -> None:
        require(self.beta >= 0, f"upstream: beta must be >= 0, got {self.beta}")
        require_whole("upstream: window", self.window, 1)

    def describe(self) -> str:
        return (
            f"Drop a chosen position if the masks on its left that stay have more than "
            f"{show(self.beta)} nats of entropy together; if none is kept, commit the best of the "
            f"first {self.window} {self.unit} from the leftmost mask on."
        )

    def why(self) -> str:
        best = f"the best of the first {self.window} {self.unit}"
        return f"{notation(self)} kept none of the chosen positions, so {best} was committed"

    def alone(self, view: View) -> Tensor:
        return from_left(view.masked, self.window, self.unit)

    def __call__(self, view: View, scores: Scores, chosen: Tensor) -> Tensor:
        stays = view.masked & ~chosen
        debt = torch.where(stays, view.raw_entropy, 0.0).cumsum(-1)  # [B, W], of the masks before
        kept = chosen & (debt <= self.beta)
        near = view.among(self.alone(view))
        return torch.where(kept.any(-1, keepdim=True), kept, best_one(scores.key, near))
