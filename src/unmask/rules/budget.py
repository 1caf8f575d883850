"""The paper's constrained problem: the most utility for a total instability of delta nats."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from unmask.errors import require
from unmask.rules.part import Standing
from unmask.rules.registry import notation, register, show
from unmask.rules.select import best_first, first_in
from unmask.rules.view import KL, Needs, Scores, View
from unmask.rules.words import KL_WORDS, beside, number

EXACT = 12  # up to so many contested positions every one of their sets is tried


@register("select", "budget", "argmax sum(S) with sum(D) <= delta", "Sec. 3, before the Lagrangian")
@dataclass(frozen=True)
class Budget:
    """The paper's constrained problem: the set of most utility with a total D of delta nats.

    The utility is exp(key): S itself, and exp(-H) for the entropy. (Taken
    literally, a sum of -H is largest for the empty set, so nothing would ever be committed.)

    What is guaranteed: D adds up to at most delta, unless no position fits alone; then the best
    one goes. No position that would still fit is left out. The utility is the largest possible
    if at most 12 positions are contested, that is, have 0 < D <= delta; else it is at least half
    of that, the better of two greedy sets: by S, and by S / D.

    A position without history has an unknown D, so it does not fit. An end of text that eos=last
    puts last waits until no other candidate is left.
    """

    delta: float = 0.1
    kl: KL = "prev_cur"

    grid = "{0.005,0.05,0.1,0.5,1,2}"

    def __post_init__(self) -> None:
        require(self.delta >= 0, f"budget: delta must be >= 0, got {self.delta}")

    def describe(self) -> str:
        limit, moved = show(self.delta), f"D = {KL_WORDS[self.kl]}"
        return (
            f"Commit the set of positions with the largest sum of scores (of exp(-H) for entropy) "
            f"whose {moved} adds up to at most {limit} nats: exactly if at most {EXACT} positions "
            f"have 0 < D <= {limit}, else at least half of that sum. If none fits, the best one."
        )

    def why(self, at: Standing) -> str:
        return _why(f"under {notation(self)}", self.delta, at.moved(self.kl), at)

    @property
    def needs(self) -> Needs:
        return Needs(kl=frozenset({self.kl}))

    def __call__(self, view: View, scores: Scores) -> Tensor:
        candidates = _without_ends(view)
        moved = view.instability(self.kl)  # [B, W]
        fits = candidates & view.seen & (moved <= self.delta)
        contested, utility = fits & (moved > 0), _utility(scores.key, candidates)
        order = best_first(scores.key, contested)
        chosen = _most_utility(contested, order, moved, utility, self.delta) | (fits & ~contested)
        best = first_in(best_first(scores.key, candidates), 1, candidates)
        return torch.where(fits.any(-1, keepdim=True), chosen, best)

    def gauge(self, view: View, scores: Scores, chosen: Tensor) -> dict[str, Tensor]:
        """The D of the chosen positions and how many fit alone, for traces: [B] each."""
        moved = torch.where(view.seen, view.instability(self.kl), torch.nan)
        fitting = (_without_ends(view) & (moved <= self.delta)).sum(-1)  # NaN does not fit
        return {"spent": _in_order(torch.where(chosen, moved, 0)), "fitting": fitting}


def _why(under: str, delta: float, moved: float, at: Standing) -> str:
    """Why a position is in the set, or is not; `moved` is its own D."""
    if at.level("fitting") == 0:
        which = "it" if at.taken else at.place
        return (
            f"{under} no candidate fits, so only the best one was committed, and this was {which}"
        )
    spent, count = at.level("spent"), len(at.selected)
    together = f"D adds up to {beside(spent, delta)} of {number(delta)} nats"
    if at.taken:
        others = "only it was committed" if count == 1 else f"it is one of the {count} committed"
        return f"{under} {others}; {together}"
    left = f"{under} it is not one of the {count} committed, for which {together}"
    # A trace rounds D, so a sum close to delta proves nothing.
    if spent + moved > 1.001 * delta + 1e-5:
        return f"{left}; with its own D, {number(moved)}, that would be too much"
    return left


def _without_ends(view: View) -> Tensor:
    """The candidates, without those that eos=last puts last while there are others: [B, W]."""
    if view.deferred is None:
        return view.masked
    others = view.masked & ~view.deferred
    return torch.where(others.any(-1, keepdim=True), others, view.masked)


def _utility(key: Tensor, candidates: Tensor) -> Tensor:
    """exp(key) as a share of the row's largest, in [0, 1]: [B, W]. Nothing overflows."""
    largest = torch.finfo(key.dtype).max
    finite = torch.where(candidates, key.clamp(-largest, largest), -largest)
    return (finite - finite.amax(-1, keepdim=True)).exp()


def _most_utility(
    contested: Tensor, order: Tensor, moved: Tensor, utility: Tensor, delta: float
) -> Tensor:
    """The contested positions of most utility whose D adds up to at most delta: [B, W] bool."""
    order = order[:, : int(contested.sum(-1).max())]  # [B, n]
    cost = torch.where(contested, moved, 0).gather(-1, order)
    gain = torch.where(contested, utility, 0).gather(-1, order)
    return contested.scatter(-1, order, _solve(cost, gain, delta)) & contested


def _solve(cost: Tensor, gain: Tensor, delta: float) -> Tensor:
    """The best set within delta: [B, n] -> [B, n] bool; beyond EXACT, one at least half as good."""
    most = cost.shape[-1]
    if most <= EXACT:
        return _best_set(cost, gain, delta)
    few = (cost > 0).sum(-1, keepdim=True) <= EXACT  # [B, 1]
    small = _best_set(cost[:, :EXACT], gain[:, :EXACT], delta)
    return torch.where(few, pad(small, (0, most - EXACT)), _half_set(cost, gain, delta))


def _best_set(cost: Tensor, gain: Tensor, delta: float) -> Tensor:
    """The set of most gain within delta, by trying all: [B, n] -> [B, n] bool.

    Among sets of equal gain it is the one with the earlier positions of the order. The sums are
    made one position after another, so they do not depend on the other rows.
    """
    spent = worth = cost.new_zeros(len(cost), 1)  # [B, sets]
    for i in reversed(range(cost.shape[-1])):
        spent = torch.cat([spent + cost[:, i, None], spent], -1)
        worth = torch.cat([worth + gain[:, i, None], worth], -1)
    best = torch.where(spent <= delta, worth, -torch.inf).argmax(-1, keepdim=True)
    bits = torch.arange(cost.shape[-1] - 1, -1, -1, device=cost.device)
    return best.bitwise_right_shift(bits) % 2 == 0


def _half_set(cost: Tensor, gain: Tensor, delta: float) -> Tensor:
    """A set of at least half the most gain within delta: [B, n] -> [B, n] bool.

    The better of two greedy sets. By gain alone, it holds the largest single gain; by gain for
    its cost, it misses the best set by less than one position.
    """
    dense = torch.where(cost > 0, gain / cost, -torch.inf).sort(descending=True, stable=True)
    rank = dense.indices
    by_gain, worth = _greedy(cost, gain, delta)
    by_ratio, dense_worth = _greedy(cost.gather(-1, rank), gain.gather(-1, rank), delta)
    by_ratio = torch.zeros_like(by_ratio).scatter(-1, rank, by_ratio)
    return torch.where((worth >= dense_worth)[:, None], by_gain, by_ratio)


def _greedy(cost: Tensor, gain: Tensor, delta: float) -> tuple[Tensor, Tensor]:
    """Everything that still fits, from the first to the last: [B, n] bool, and its gain: [B].

    A pass takes the longest run that fits and leaves out what no longer does.
    """
    taken = torch.zeros_like(cost, dtype=torch.bool)
    spent = cost.new_zeros(len(cost), 1)
    left = cost <= delta
    while bool(left.any()):
        running = spent + torch.where(left, cost, 0).cumsum(-1)
        more = left & (running <= delta)
        taken |= more
        spent = torch.where(more, running, spent).amax(-1, keepdim=True)
        left &= ~more & (spent + cost <= delta)
    return taken, _in_order(torch.where(taken, gain, 0))


def _in_order(terms: Tensor) -> Tensor:
    """The sum over the last axis from left to right, which no padding changes: [B]."""
    return terms.cumsum(-1)[:, -1]
