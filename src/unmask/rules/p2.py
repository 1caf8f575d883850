"""P2: masks and commitments compete for places; commitments that lose are masked again."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.errors import require, require_whole
from unmask.rules.part import Standing
from unmask.rules.registry import notation, register, show
from unmask.rules.schedules import even_share
from unmask.rules.select import best_first, first_in
from unmask.rules.view import Needs, Scores, View


@register(
    "select",
    "p2",
    "masks among the n_t best of masks and commitments",
    "P2, self-planning",
    note="Written from the paper; it was not compared with a decoder of the authors, and their "
    "figures were not repeated.",
)
@dataclass(frozen=True)
class PathPlan:
    """Masks that are among the n_t best of all positions, n_t by an even timetable of `steps`.

    A commitment counts with eta times the logarithm of its probability now. `p2_back` with the
    same steps masks those again that lose their place.
    """

    steps: int = 256
    eta: float = 1.0

    grid = "{8,16,32,64,128,256}"
    adaptive = False
    needs = Needs(support=True)

    def __post_init__(self) -> None:
        require_whole("p2: steps", self.steps, 1)
        require(self.eta >= 0, f"p2: eta must be >= 0, got {self.eta}")

    def describe(self) -> str:
        return (
            f"Commit the masks that rank among the best of masks and commitments, as many as "
            f"{self.steps} steps ask for; a commitment counts {show(self.eta)} log p."
        )

    def why(self, at: Standing) -> str:
        return f"{notation(self)} ranks masks beside commitments, and it was {at.place}"

    def __call__(self, view: View, scores: Scores) -> Tensor:
        held = self.eta * view.declared("support").log().clamp_min(-1e300)
        key = torch.where(view.masked, scores.key, held)
        some = view.masked | view.revocable
        count = view.revocable.sum(-1) + even_share(self.steps, view.progress)
        return first_in(best_first(key, some), count, some) & view.masked


@register(
    "revoke",
    "p2_back",
    "the least likely commitments that lost their place",
    "P2",
    note="It belongs to `p2`; see there.",
)
@dataclass(frozen=True)
class PathReturn:
    """Masks the least likely commitments again, as many as were committed beyond the timetable.

    Beside another selection than `p2` it takes back what exceeds the even share of `steps`.
    """

    steps: int = 256

    needs = Needs(support=True)

    def __post_init__(self) -> None:
        require_whole("p2_back: steps", self.steps, 1)

    def describe(self) -> str:
        return (
            "Mask the least likely commitments again, as many as were committed beyond the share "
            f"of {self.steps} steps."
        )

    def why(self) -> str:
        return "it was the least likely, and the step committed more than its share"

    def __call__(self, view: View) -> Tensor:
        excess = view.declared("chosen").sum(-1) - even_share(self.steps, view.progress)
        order = best_first(-view.declared("support"), view.revocable)
        return first_in(order, excess, view.revocable)
