"""Selections that take a best-first prefix, as long as a running cost stays within a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from unmask.errors import require
from unmask.rules.free_slot import (
    DESCRIBED,
    Free,
    check_start,
    needs_of,
    plain_why,
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

_LAST = {
    "fair": "",
    "take": " The last candidate is taken even if it fails.",
    "drop": " When all candidates pass, the last one is left out.",
}


def longest_prefix(within: Tensor, order: Tensor, candidates: Tensor) -> Tensor:
    """The prefix of the order up to the first False, at least its first position: [B, W] bool."""
    within = within.clone()
    within[:, :1] = True
    prefix = within.to(torch.uint8).cummin(-1).values.bool()
    return torch.zeros_like(candidates).scatter(-1, order, prefix) & candidates


def _gauge(
    part: EntropyBound | Factor, view: View, scores: Scores, chosen: Tensor
) -> dict[str, Tensor]:
    """The cost of the chosen prefix (`spent`), and with one position more (`next`): [B] each.

    `next` is NaN where every candidate was chosen.
    """
    running = part._cost(view, scores, best_first(scores.key, view.masked))
    taken, most = chosen.sum(-1, keepdim=True), view.masked.sum(-1, keepdim=True)
    spent = running.gather(-1, (taken - 1).clamp_min(0))
    following = running.gather(-1, taken.clamp_max(running.shape[-1] - 1))
    following = torch.where(taken < most, following, torch.nan)
    return {"spent": spent[:, 0], "next": following[:, 0]}


def _committed(at: Standing) -> str:
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
        without any history only the position nearest to the uniform distribution goes, as with
        swd(start=uniform), and the history is kept as for swd.
    """

    gamma: float = 0.1
    free: Free = "order"

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
        return _gauge(self, view, scores, chosen) if self.free == "order" else {}

    def why(self, at: Standing) -> str:
        if self.free != "order":
            return plain_why(notation(self), at)
        name, limit, count = notation(self), number(self.gamma), len(at.selected)
        total, following = "entropies without the largest", beside(at.level("next"), self.gamma)
        more = f"with one more, the {total} would add up to {following}, over {limit} nats"
        if not at.taken:
            return f"{name} {_committed(at)}, and this was {at.place}; {more}"
        if count == len(at.ranks):
            more = "no other candidate was left"
        if count == 1:
            return f"{name} always commits the best one, and this was it; {more}"
        cost = f"their {total} add up to {beside(at.level('spent'), self.gamma)} of {limit} nats"
        return f"{name} {_committed(at)}, and this was {at.place}; {cost}; {more}"

    def __call__(self, view: View, scores: Scores) -> Tensor:
        order = best_first(scores.key, view.masked)  # [B, W]
        chosen = longest_prefix(self._cost(view, scores, order) <= self.gamma, order, view.masked)
        return with_free_slot(self.free, view, order, chosen, self.gamma)

    def _cost(self, view: View, scores: Scores, order: Tensor) -> Tensor:
        h = view.raw_entropy.gather(-1, order)  # [B, W], in that order
        return h.cumsum(-1) - h.cummax(-1).values


@register("select", "factor", "most n with (n + 1)(1 - S_(n)) < f", "Fast-dLLM's factor rule")
@dataclass(frozen=True)
class Factor:
    """The longest best-first prefix in which (n + 1)(1 - S_(n)) stays below f.

    last: the treatment of the last candidate. `fair` is the rule as stated; `take` is Fast-dLLM's
        code (a tie passes, and the last candidate is taken even if it fails); `drop` is d2Cache's
        (when all pass, the last one is left out).
    """

    f: float = 1.0
    last: Literal["fair", "take", "drop"] = "fair"

    needs = Needs()
    gauge = _gauge

    def __post_init__(self) -> None:
        require(self.f > 0, f"factor: f must be > 0, got {self.f}")

    def describe(self) -> str:
        return (
            f"Commit the longest best-first run in which (n + 1)(1 - score of the n-th) stays "
            f"below {show(self.f)}; at least one.{_LAST[self.last]}"
        )

    def why(self, at: Standing) -> str:
        following, cost = at.level("next"), "(n + 1)(1 - score)"
        after = "" if math.isnan(following) else f"; at the next one it is {number(following)}"
        front = f"{notation(self)} {_committed(at)}"
        if at.taken:
            last = f"{cost} at the last of them is {number(at.level('spent'))}"
            return f"{front}, and this was {at.place}; {last}{after}"
        return f"{front}, and this was {at.place}{after}, by {cost}"

    def __call__(self, view: View, scores: Scores) -> Tensor:
        order = best_first(scores.key, view.masked)
        n = torch.arange(1, order.shape[-1] + 1, device=order.device)
        final = n == view.masked.sum(-1, keepdim=True)  # [B, W], the last candidate
        if self.last == "take":
            within = (scores.value.gather(-1, order) >= 1 - self.f / (n + 1)) | final
        else:
            within = self._cost(view, scores, order) < self.f
            within &= ~final if self.last == "drop" else True
        return longest_prefix(within, order, view.masked)

    def _cost(self, view: View, scores: Scores, order: Tensor) -> Tensor:
        n = torch.arange(1, order.shape[-1] + 1, device=order.device)
        return (n + 1) * (1 - scores.value.gather(-1, order))
