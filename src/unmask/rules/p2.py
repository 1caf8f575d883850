"""P2: masks and commitments compete for places; commitments that lose are masked again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unmask.errors import require, require_whole
from unmask.rules.part import Standing
from unmask.rules.registry import notation, register, show
from unmask.rules.schedules import steps_per_window
from unmask.rules.select import best_first, first_in
from unmask.rules.view import Needs, Progress, Scores, View

Rank = Literal["own", "newest"]
_OF = {"own": "its token", "newest": "the likeliest token there"}


@register(
    "select",
    "p2",
    "masks among the n_t best of masks and commitments",
    "P2, self-planning; Open-dCoder",
    note="With rank=newest equal to Open-dCoder's code in its golden cases; rank=own is written "
    "from the paper. The published figures were not repeated.",
)
@dataclass(frozen=True)
class PathPlan:
    """Masks that are among the n_t best of all positions, n_t by an even timetable of `steps`.

    A commitment counts with eta times the logarithm of a probability. `p2_back` with the same
    steps and rank masks those again that lose their place.
    rank: `own` takes the probability of the commitment's token now; `newest` that of the likeliest
        token there.
    """

    steps: int = 256
    eta: float = 1.0
    rank: Rank = "own"

    grid = "{8,16,32,64,128,256}"
    adaptive = False
    waits = True

    def __post_init__(self) -> None:
        require_whole("p2: steps", self.steps, 1)
        require(self.eta >= 0, f"p2: eta must be >= 0, got {self.eta}")

    @property
    def needs(self) -> Needs:
        return _needs_of(self.rank)

    def describe(self) -> str:
        return (
            f"Commit the masks that rank among the best of masks and commitments, as many as "
            f"{self.steps} steps ask for; a commitment counts {show(self.eta)} log p of "
            f"{_OF[self.rank]}."
        )

    def why(self, at: Standing) -> str:
        return f"{notation(self)} ranks masks beside commitments, and it was {at.place}"

    def __call__(self, view: View, scores: Scores) -> Tensor:
        held = self.eta * _standing(view, self.rank).log().clamp_min(-1e300)
        some = view.masked | view.revocable
        order = best_first(torch.where(view.masked, scores.key, held), some)
        count = some.sum(-1) - _masks_after(self.steps, view.progress)
        return first_in(order, count, some) & view.masked


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
    rank: Rank = "own"

    def __post_init__(self) -> None:
        require_whole("p2_back: steps", self.steps, 1)

    @property
    def needs(self) -> Needs:
        return _needs_of(self.rank)

    def describe(self) -> str:
        return (
            "Mask the least likely commitments again, as many as were committed beyond the share "
            f"of {self.steps} steps, by the probability of {_OF[self.rank]}."
        )

    def why(self) -> str:
        return "it was the least likely, and the step committed more than its share"

    def __call__(self, view: View) -> Tensor:
        left = (view.masked & ~view.declared("chosen")).sum(-1)
        excess = _masks_after(self.steps, view.progress) - left
        order = best_first(-_standing(view, self.rank), view.revocable)
        return first_in(order, excess, view.revocable)


def _needs_of(rank: Rank) -> Needs:
    return Needs(support=True) if rank == "own" else Needs(fixed=True)


def _standing(view: View, rank: Rank) -> Tensor:
    """The probability by which a commitment is ranked: [B, W]."""
    return view.declared("support") if rank == "own" else view.confidence


def _masks_after(steps: int, progress: Progress) -> Tensor:
    """How many masks the timetable leaves after this step, rounded down in float32: [B]."""
    share = 1 - (progress.step + 1).double() / steps_per_window(steps, progress)
    return (progress.opened.float() * share.clamp_min(0).float()).long()
