"""The free position of an entropy bound: which position of a step costs nothing of the budget.

With any one position f left out, the entropies of a step bound what it loses against the joint
(docs/free-position.md): so f may be any position, whatever its entropy.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from unmask.errors import require
from unmask.rules.part import Standing
from unmask.rules.select import leftmost
from unmask.rules.stability import Stability
from unmask.rules.view import Needs, View
from unmask.rules.words import counted

Free = Literal["order", "leftmost", "leftmost_alone", "flattest_first"]
_RUN = (
    "Commit the longest best-first run of positions whose entropies, without the largest, add up "
    "to at most {} nats; at least one."
)
DESCRIBED: dict[Free, str] = {  # with a place for gamma
    "order": _RUN,
    "leftmost": "Commit the leftmost mask, and the longest best-first run of positions whose "
    "entropies add up to at most {} nats.",
    "leftmost_alone": f"{_RUN} Where that is one alone, commit the leftmost mask instead.",
    "flattest_first": f"{_RUN} Before there is any history, rank as swd does, against the "
    "uniform distribution: the flattest position comes first.",
}


def needs_of(free: Free) -> Needs:
    """What the choice of the free position reads."""
    if free != "flattest_first":
        return Needs()
    return Needs(kl=frozenset({"prev_cur"}), uniform_start=True)


def check_start(free: Free, swd: Stability | None) -> None:
    """Raise if SWD starts otherwise than the free position."""
    require(
        free != "flattest_first" or swd is None or swd.start == "uniform",
        "eb: free=flattest_first starts from the uniform distribution, so swd must too: leave out "
        "its start",
    )


def plain_why(name: str, at: Standing) -> str:
    """Why a position was taken or not where the rank alone does not decide."""
    among = "this one among them" if at.taken else "this one not among them"
    return f"{name} committed {counted(len(at.selected), 'position')}, {among}; it was {at.place}"


def ranking(free: Free, view: View, key: Tensor) -> Tensor:
    """The key that orders a step; before any history it may put the flattest position first."""
    if free != "flattest_first":
        return key
    flat_first = key - Stability.lam * view.instability("prev_cur")  # D against uniform
    return torch.where(view.seen.any(-1, keepdim=True), key, flat_first)


def with_free_slot(free: Free, view: View, order: Tensor, chosen: Tensor, gamma: float) -> Tensor:
    """The positions of a step that spends its free slot otherwise than EB's `chosen`: [B, W]."""
    if free == "leftmost":
        return leftmost(view) | _prefix(view, order, gamma)
    if free == "leftmost_alone":
        return torch.where(chosen.sum(-1, keepdim=True) == 1, leftmost(view), chosen)
    return chosen


def _prefix(view: View, order: Tensor, gamma: float) -> Tensor:
    """The longest best-first prefix with sum(H) <= gamma, none where the best one has more."""
    within = view.raw_entropy.gather(-1, order).cumsum(-1) <= gamma
    return torch.zeros_like(view.masked).scatter(-1, order, within) & view.masked
