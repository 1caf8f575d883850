"""Selections: which of the scored positions are committed in this step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unmask.errors import require, require_whole
from unmask.rules.registry import register
from unmask.rules.view import KL, Needs, Scores, View

Test = Literal["gt", "ge"]


def best_first(key: Tensor, candidates: Tensor) -> Tensor:
    """Positions in the order of their key, candidates before all others: [B, W].

    Ties go to the lowest position. A key of -inf is the last of the candidates, not out.
    """
    finite = key.clamp_min(torch.finfo(key.dtype).min)
    return torch.where(candidates, finite, -torch.inf).sort(descending=True, stable=True).indices


def first_in(order: Tensor, count: Tensor | int, candidates: Tensor) -> Tensor:
    """The first `count` (a number, or one per row) positions of the order: [B, W] bool."""
    limit = count if isinstance(count, int) else count[:, None]
    early = torch.arange(order.shape[-1], device=order.device) < limit
    early = early.expand(order.shape)
    return torch.zeros_like(candidates).scatter(-1, order, early) & candidates


def longest_prefix(within: Tensor, order: Tensor, candidates: Tensor) -> Tensor:
    """The prefix of the order up to the first False, at least its first position: [B, W] bool."""
    within = within.clone()
    within[:, :1] = True
    prefix = within.to(torch.uint8).cummin(-1).values.bool()
    return torch.zeros_like(candidates).scatter(-1, order, prefix) & candidates


def at_the_cut(running: Tensor, chosen: Tensor, candidates: Tensor) -> dict[str, Tensor]:
    """A running cost in best-first order: what the chosen prefix spent, and with one more: [B].

    `next` is NaN where every candidate was chosen.
    """
    taken, most = chosen.sum(-1, keepdim=True), candidates.sum(-1, keepdim=True)
    spent = running.gather(-1, (taken - 1).clamp_min(0))
    following = running.gather(-1, taken.clamp_max(running.shape[-1] - 1))
    following = torch.where(taken < most, following, torch.nan)
    return {"spent": spent[:, 0], "next": following[:, 0]}


def _passes(value: Tensor, level: float | Tensor, test: Test) -> Tensor:
    return value > level if test == "gt" else value >= level


@register("select", "top", "the k best", "Sec. 2; LLaDA, d2Cache")
@dataclass(frozen=True)
class TopK:
    """The k best positions of each row."""

    k: int = 1

    adaptive = False
    needs = Needs()

    def __post_init__(self) -> None:
        require_whole("top: k", self.k, 1)

    def __call__(self, view: View, scores: Scores) -> Tensor:
        return first_in(best_first(scores.key, view.masked), self.k, view.masked)


@register("select", "threshold", "{ i : S_i > tau }, else the best one", "Sec. 2; Fast-dLLM")
@dataclass(frozen=True)
class Threshold:
    """Every position whose score is above tau, in the score's own unit; else the best one.

    test: `gt` is strict, `ge` lets a score equal to tau pass (Fast-dLLM, d2Cache, Dream).
    slack: > 0 also takes every score within that distance of the best (dInfer: 1e-5).
    """

    tau: float = 0.9
    test: Test = "gt"
    slack: float = 0.0

    needs = Needs()

    def __post_init__(self) -> None:
        require(self.slack >= 0, f"threshold: slack must be >= 0, got {self.slack}")
        require(self.tau == self.tau, "threshold: tau must be a number, got nan")

    def __call__(self, view: View, scores: Scores) -> Tensor:
        passing = _passes(scores.value, self.tau, self.test) & view.masked
        if self.slack:
            best = torch.where(view.masked, scores.value, -torch.inf).amax(-1, keepdim=True)
            passing |= (scores.value >= best - self.slack) & view.masked
        best = first_in(best_first(scores.key, view.masked), 1, view.masked)
        return torch.where(passing.any(-1, keepdim=True), passing, best)

    def gauge(self, view: View, scores: Scores, chosen: Tensor) -> dict[str, Tensor]:
        """The best score of each row and how many pass, for traces: [B] each."""
        passing = _passes(scores.value, self.tau, self.test) & view.masked
        best = torch.where(view.masked, scores.value, -torch.inf).amax(-1)
        return {"best": best, "passing": passing.sum(-1)}


@register(
    "select", "eb", "longest best-first prefix with sum(H) - max(H) <= gamma", "Eq. 4; EB-Sampler"
)
@dataclass(frozen=True)
class EntropyBound:
    """Best-first prefix whose entropies, but for the largest, stay within gamma nats.

    The best position alone gives H - H = 0, so a row with masks always progresses. The order is
    the modulated score's, the entropies are the model's own.
    """

    gamma: float = 0.1

    needs = Needs()

    def __post_init__(self) -> None:
        require(self.gamma >= 0, f"eb: gamma must be >= 0, got {self.gamma}")

    def __call__(self, view: View, scores: Scores) -> Tensor:
        order = best_first(scores.key, view.masked)  # [B, W]
        return longest_prefix(self._spent(view, order) <= self.gamma, order, view.masked)

    def gauge(self, view: View, scores: Scores, chosen: Tensor) -> dict[str, Tensor]:
        """What of gamma was spent, and what one more would have made of it: [B] each."""
        running = self._spent(view, best_first(scores.key, view.masked))
        return at_the_cut(running, chosen, view.masked)

    def _spent(self, view: View, order: Tensor) -> Tensor:
        h = view.raw_entropy.gather(-1, order)  # [B, W], in that order
        return h.cumsum(-1) - h.cummax(-1).values


@register(
    "select", "budget", "longest best-first prefix with sum(D) <= delta", "Sec. 3, Lagrangian"
)
@dataclass(frozen=True)
class Budget:
    """The paper's constrained problem: the most utility for a total instability of delta nats.

    Greedy by key until the budget is spent, at least one. A position without history has an
    unknown D and is taken only as that one.
    """

    delta: float = 0.1
    kl: KL = "prev_cur"

    def __post_init__(self) -> None:
        require(self.delta >= 0, f"budget: delta must be >= 0, got {self.delta}")

    @property
    def needs(self) -> Needs:
        return Needs(kl=frozenset({self.kl}))

    def __call__(self, view: View, scores: Scores) -> Tensor:
        order = best_first(scores.key, view.masked)
        within = (self._spent(view, order) <= self.delta) & view.seen.gather(-1, order)
        return longest_prefix(within, order, view.masked)

    def gauge(self, view: View, scores: Scores, chosen: Tensor) -> dict[str, Tensor]:
        """What of delta was spent, and what one more would have made of it: [B] each."""
        running = self._spent(view, best_first(scores.key, view.masked))
        return at_the_cut(running, chosen, view.masked)

    def _spent(self, view: View, order: Tensor) -> Tensor:
        moved = torch.where(view.seen, view.instability(self.kl), torch.inf)
        return moved.gather(-1, order).cumsum(-1)


@register("select", "factor", "most n with (n + 1)(1 - S_(n)) < f", "Fast-dLLM's factor rule")
@dataclass(frozen=True)
class Factor:
    """The longest best-first prefix in which (n + 1)(1 - S_(n)) stays below f.

    last: what happens to the last candidate of all. `fair` is the rule as stated; `take` is
    Fast-dLLM's code (a tie passes, and a scan that fails only there takes it all the same);
    `drop` is d2Cache's (when all pass, one is left out).
    """

    f: float = 1.0
    last: Literal["fair", "take", "drop"] = "fair"

    needs = Needs()

    def __post_init__(self) -> None:
        require(self.f > 0, f"factor: f must be > 0, got {self.f}")

    def __call__(self, view: View, scores: Scores) -> Tensor:
        order = best_first(scores.key, view.masked)
        n, value = self._ranked(scores, order)
        final = n == view.masked.sum(-1, keepdim=True)  # [B, W], the last candidate
        if self.last == "take":
            within = (value >= 1 - self.f / (n + 1)) | final
        else:
            within = (n + 1) * (1 - value) < self.f
            within &= ~final if self.last == "drop" else True
        return longest_prefix(within, order, view.masked)

    def gauge(self, view: View, scores: Scores, chosen: Tensor) -> dict[str, Tensor]:
        """(n + 1)(1 - S_(n)) of the last one taken and of the next: [B] each."""
        n, value = self._ranked(scores, best_first(scores.key, view.masked))
        return at_the_cut((n + 1) * (1 - value), chosen, view.masked)

    def _ranked(self, scores: Scores, order: Tensor) -> tuple[Tensor, Tensor]:
        n = torch.arange(1, order.shape[-1] + 1, device=order.device)
        return n, scores.value.gather(-1, order)


@register(
    "select", "klass", "{ i : S_i > conf and the last n KL_i < kl }, else the best one", "KLASS"
)
@dataclass(frozen=True)
class Klass:
    """Every position that is confident and whose last n KL(current || previous) are small.

    conf is compared with the (modulated) score, kl with KLASS's own instability. None ready: the
    best one. gate: in the first n - 1 steps of a block nothing is ready (KLASS); without it
    the KL of later blocks is followed from the start (d2Cache), which costs head rows.
    """

    conf: float = 0.9
    kl: float = 0.001
    n: int = 2
    test: Test = "gt"
    gate: bool = True

    def __post_init__(self) -> None:
        require(self.kl > 0, f"klass: kl must be > 0, got {self.kl}")
        require_whole("klass: n", self.n, 1)

    @property
    def needs(self) -> Needs:
        return Needs(trail=self.n, later_blocks=not self.gate)

    def __call__(self, view: View, scores: Scores) -> Tensor:
        ready = self._ready(view, scores)
        best = first_in(best_first(scores.key, view.masked), 1, view.masked)
        return torch.where(ready.any(-1, keepdim=True), ready, best)

    def gauge(self, view: View, scores: Scores, chosen: Tensor) -> dict[str, Tensor]:
        """The best score of each row and how many are ready, for traces: [B] each."""
        best = torch.where(view.masked, scores.value, -torch.inf).amax(-1)
        return {"best": best, "passing": self._ready(view, scores).sum(-1)}

    def _ready(self, view: View, scores: Scores) -> Tensor:
        calm = (view.declared("trail")[..., -self.n :] < self.kl).all(-1)
        ready = calm & _passes(scores.value, self.conf, self.test) & view.masked
        return ready & (view.progress.step >= self.n - 1)[:, None] if self.gate else ready


@register(
    "select", "hierarchy", "best of each masked run if > low, and all > tau", "dInfer's hierarchy"
)
@dataclass(frozen=True)
class Hierarchy:
    """Divide and conquer: the best of every run of neighbouring masks, and all above tau."""

    tau: float = 0.9
    low: float = 0.4

    needs = Needs()

    def __post_init__(self) -> None:
        require(self.low <= self.tau, f"hierarchy: low must be <= tau, got {self.low}")

    def __call__(self, view: View, scores: Scores) -> Tensor:
        order = best_first(scores.key, view.masked)
        rank = order.argsort(-1)  # [B, W], 0 is the best
        starts = view.masked & ~torch.nn.functional.pad(view.masked, (1, -1))
        run = starts.cumsum(-1)  # [B, W], neighbouring masks share a number
        worst = torch.full_like(torch.nn.functional.pad(rank, (0, 1)), rank.shape[-1])
        leader = worst.scatter_reduce(
            -1, run, torch.where(view.masked, rank, rank.shape[-1]), "amin"
        )
        first_of_run = view.masked & (rank == leader.gather(-1, run))
        chosen = (first_of_run & (scores.value > self.low)) | (scores.value > self.tau)
        return (chosen & view.masked) | first_in(order, 1, view.masked)


@register("select", "ar", "leftmost run with S >= tau, at least one", "d2Cache's ar")
@dataclass(frozen=True)
class LeftToRight:
    """From the leftmost mask on, while the score is at least tau and no token is skipped."""

    tau: float = 1.0
    k: int = 1

    adaptive = False  # nothing may change its order, not even a missing history
    needs = Needs()

    def __post_init__(self) -> None:
        require_whole("ar: k", self.k, 1)

    def __call__(self, view: View, scores: Scores) -> Tensor:
        begun = view.masked.cumsum(-1) > 0  # [B, W], from the leftmost mask on
        few = begun.cumsum(-1) <= self.k
        sure = scores.value >= self.tau
        return _unbroken(view.masked & sure, begun) | _unbroken(view.masked & few, begun)


def _unbroken(good: Tensor, begun: Tensor) -> Tensor:
    """True from where it has begun up to the first position that is not good: [B, W]."""
    return (good | ~begun).to(torch.uint8).cummin(-1).values.bool() & begun
