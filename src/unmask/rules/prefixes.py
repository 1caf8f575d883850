"""Selections that take a best-first prefix, as long as a running cost stays within a bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unmask.errors import require
from unmask.rules.free_slot import (
    DESCRIBED,
    Free,
    check_start,
    needs_of,
    plain_why,
    ranking,
    with_free_slot,
)
from unmask.rules.part import Standing
from unmask.rules.registry import notation, register, show
from unmask.rules.select import best_first
from unmask.rules.stability import swd_of
from unmask.rules.view import Needs, Scores, View
from unmask.rules.words import beside, number

if TYPE_CHECKING:
    from unmask.rules.rule import Rule


def longest_prefix(within: Tensor, order: Tensor, candidates: Tensor) -> Tensor:
    """The prefix of the order up to the first False, at least its first position: [B, W] bool."""
    beyond = ~within
    beyond.narrow(-1, 0, 1).fill_(False)
    prefix = beyond.cumsum(-1) == 0
    return torch.zeros_like(candidates).scatter_(-1, order, prefix) & candidates


def prefix_gauge(running: Tensor, view: View, chosen: Tensor) -> dict[str, Tensor]:
    """The cost of the chosen prefix (`spent`), and with one position more (`next`): [B] each.

    `running` is the cost in the order of the prefix; `next` is NaN where all were chosen.
    """
    taken, most = chosen.sum(-1, keepdim=True), view.masked.sum(-1, keepdim=True)
    spent = running.gather(-1, (taken - 1).clamp_min(0))
    following = running.gather(-1, taken.clamp_max(running.shape[-1] - 1))
    following = torch.where(taken < most, following, torch.nan)
    return {"spent": spent[:, 0], "next": following[:, 0]}


def committed(at: Standing) -> str:
    """What a prefix did, in words."""
    count = len(at.selected)
    return "committed only the best one" if count == 1 else f"committed the {count} best"


@register(
    "select", "eb", "longest best-first prefix with sum(H) - max(H) <= gamma", "Eq. 4; EB-Sampler"
)
@dataclass(frozen=True)
class EntropyBound:
    """Best-first prefix whose entropies, without the largest, add up to at most gamma nats.

    The best position alone gives H - H = 0, so a row with masks always progresses. The modulated
    score gives the order; the entropies are those of the model's own distribution.

    free: one position of a step costs nothing. `order` gives it to the order (EB-Sampler);
        `leftmost` to the leftmost mask, beside a prefix with sum(H) <= gamma; `leftmost_alone` to
        the leftmost mask where EB would commit one position alone; `flattest_first` is EB, but
        without any history it ranks by log S - 5 D against the uniform distribution, as swd(5), so
        the flattest position comes first; the history is kept as for swd.
    """

    gamma: float = 0.1
    free: Free = "order"

    grid = "{0.005,0.05,0.1,0.5,1,2}"

    def __post_init__(self) -> None:
        require(self.gamma >= 0, f"eb: gamma must be >= 0, got {self.gamma}")

    @property
    def needs(self) -> Needs:
        return needs_of(self.free)

    def check_rule(self, rule: Rule) -> None:
        """Raise if SWD starts otherwise than the free position."""
        check_start(self.free, swd_of(rule))

    def describe(self) -> str:
        return DESCRIBED[self.free].format(show(self.gamma))

    def gauge(self, view: View, scores: Scores, chosen: Tensor) -> dict[str, Tensor]:
        """What the prefix and the next position cost, for traces: [B] each."""
        running = _but_the_largest(view, best_first(scores.key, view.masked))
        return prefix_gauge(running, view, chosen) if self.free == "order" else {}

    def why(self, at: Standing) -> str:
        if self.free != "order":
            return plain_why(notation(self), at)
        return _why_bounded(notation(self), self.gamma, at)

    def __call__(self, view: View, scores: Scores) -> Tensor:
        order = best_first(ranking(self.free, view, scores.key), view.masked)  # [B, W]
        within = _but_the_largest(view, order) <= self.gamma
        chosen = longest_prefix(within, order, view.masked)
        return with_free_slot(self.free, view, order, chosen, self.gamma)


def _but_the_largest(view: View, order: Tensor) -> Tensor:
    """The sum of the entropies without the largest, for every prefix of the order: [B, W]."""
    h = view.raw_entropy.gather(-1, order)  # [B, W], in that order
    return h.cumsum(-1) - h.cummax(-1).values


def _why_bounded(name: str, gamma: float, at: Standing) -> str:
    """Why a position is in the prefix, or is not."""
    limit, count = number(gamma), len(at.selected)
    total, following = "entropies without the largest", beside(at.level("next"), gamma)
    more = f"with one more, the {total} would add up to {following}, over {limit} nats"
    if not at.taken:
        return f"{name} {committed(at)}, and this was {at.place}; {more}"
    if count == len(at.ranks):
        more = "no other candidate was left"
    if count == 1:
        return f"{name} always commits the best one, and this was it; {more}"
    cost = f"their {total} add up to {beside(at.level('spent'), gamma)} of {limit} nats"
    return f"{name} {committed(at)}, and this was {at.place}; {cost}; {more}"
