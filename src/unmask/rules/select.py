"""Selections: which of the scored positions are committed in this step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unmask.errors import require, require_whole
from unmask.rules.part import Standing
from unmask.rules.registry import notation, register, show
from unmask.rules.view import Needs, Scores, View
from unmask.rules.words import beside, number

Test = Literal["gt", "ge"]
_ABOVE = {"gt": "above", "ge": "at or above"}


def best_first(key: Tensor, candidates: Tensor) -> Tensor:
    """Positions in the order of their key, candidates before all others: [B, W].

    Ties go to the lowest position. A candidate with a key of -inf is the last one; it stays in.
    """
    finite = key.clamp_min(torch.finfo(key.dtype).min)
    return torch.where(candidates, finite, -torch.inf).sort(descending=True, stable=True).indices


def first_in(order: Tensor, count: Tensor | int, candidates: Tensor) -> Tensor:
    """The first `count` (a number, or one per row) positions of the order: [B, W] bool."""
    limit = count if isinstance(count, int) else count[:, None]
    early = torch.arange(order.shape[-1], device=order.device) < limit
    early = early.expand(order.shape)
    return torch.zeros_like(candidates).scatter(-1, order, early) & candidates


def best_one(key: Tensor, view: View) -> Tensor:
    """The position that goes if nothing else does: [B, W] bool."""
    return first_in(best_first(key, view.fallback), 1, view.fallback)


def leftmost(view: View) -> Tensor:
    """The leftmost candidate of each row: [B, W] bool."""
    return view.masked & (view.masked.cumsum(-1) == 1)


def best_positions(k: int) -> str:
    """`the best position`, or `the 3 best positions`."""
    return "the best position" if k == 1 else f"the {k} best positions"


def _passes(value: Tensor, level: float | Tensor, test: Test) -> Tensor:
    return value > level if test == "gt" else value >= level


@register("select", "top", "the k best", "Sec. 2; LLaDA, d2Cache")
@dataclass(frozen=True)
class TopK:
    """The k best positions of each row."""

    k: int = 1

    grid = "{1,2,3,4,6,8}"
    adaptive = False
    needs = Needs()

    def __post_init__(self) -> None:
        require_whole("top: k", self.k, 1)

    def describe(self) -> str:
        return f"Commit {best_positions(self.k)}."

    def why(self, at: Standing) -> str:
        best = "the best one" if self.k == 1 else f"the {self.k} best"
        return f"{notation(self)} takes {best}, and it was {at.place}"

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

    grid = "{0.6,0.7,0.8,0.9,0.95}"
    needs = Needs()

    def __post_init__(self) -> None:
        require(self.slack >= 0, f"threshold: slack must be >= 0, got {self.slack}")
        require(self.tau == self.tau, "threshold: tau must be a number, got nan")

    def describe(self) -> str:
        near = f", and everything within {show(self.slack)} of the best" if self.slack else ""
        return (
            f"Commit every position whose score is {_ABOVE[self.test]} {show(self.tau)}{near}; "
            "if there is none, the best one."
        )

    def why(self, at: Standing) -> str:
        under, above = f"under {notation(self)}", f"{_ABOVE[self.test]} {number(self.tau)}"
        if at.level("passing") == 0:
            best = beside(at.level("best"), self.tau)
            none = f"no candidate was {above} (the best had {best})"
            return f"{under} {none}, so {_best_alone(at, bool(self.slack))}"
        near = f" or within {number(self.slack)} of the best" if self.slack and at.taken else ""
        was = "was" if at.taken else "was not"
        return f"{under} its score, {beside(at.score, self.tau)}, {was} {above}{near}"

    def __call__(self, view: View, scores: Scores) -> Tensor:
        passing = _passes(scores.value, self.tau, self.test) & view.masked
        if self.slack:
            near = scores.value >= _best_value(view, scores)[:, None] - self.slack
            passing |= near & view.masked
        return _or_best(passing, view, scores)

    def gauge(self, view: View, scores: Scores, chosen: Tensor) -> dict[str, Tensor]:
        """The best score of each row and how many pass, for traces: [B] each."""
        passing = _passes(scores.value, self.tau, self.test) & view.masked
        return {"best": _best_value(view, scores), "passing": passing.sum(-1)}


def _or_best(passing: Tensor, view: View, scores: Scores) -> Tensor:
    """What passes, and in rows where nothing does, the best one: [B, W] bool."""
    some = passing.any(-1, keepdim=True)
    if bool(some.all()):
        return passing
    return torch.where(some, passing, best_one(scores.key, view))


def _best_value(view: View, scores: Scores) -> Tensor:
    """The best score of the candidates of each row: [B]."""
    return torch.where(view.masked, scores.value, -torch.inf).amax(-1)


def _best_alone(at: Standing, and_near: bool) -> str:
    """What a threshold commits that no candidate passes; `and_near`: with a slack."""
    also = " and those close to it were" if and_near else " was"
    if not at.taken:
        return f"only the best one{also} committed, and this was {at.place}"
    which = "one of them" if and_near and at.rank > 1 else "it"
    return f"the best one{also} committed, and this was {which}"


@register(
    "select", "klass", "{ i : S_i > conf and the last n KL_i < kl }, else the best one", "KLASS"
)
@dataclass(frozen=True)
class Klass:
    """Every position that is confident and whose last n KL(current || previous) are small.

    conf is compared with the (modulated) score, kl with KL(current || previous). If no position
    is ready, the best one is taken.
    gate: `yes` keeps all positions waiting in the first n - 1 steps of a block (KLASS); `no`
        follows the KL of later blocks from the start (d2Cache), which costs more head rows.
    """

    conf: float = 0.9
    kl: float = 0.001
    n: int = 2
    test: Test = "gt"
    gate: bool = True

    grid = "{0.6,0.7,0.8,0.9}, kl={0.001,0.01}"

    def __post_init__(self) -> None:
        require(self.kl > 0, f"klass: kl must be > 0, got {self.kl}")
        require_whole("klass: n", self.n, 1)

    def describe(self) -> str:
        gate = f" Nothing is ready in a block's first {self.n - 1} steps." if self.gate else ""
        return (
            f"Commit every position whose score is {_ABOVE[self.test]} {show(self.conf)} and whose "
            f"last {self.n} values of KL(current || previous) are all below {show(self.kl)}; if "
            f"there is none, the best one.{gate}"
        )

    def why(self, at: Standing) -> str:
        under = f"under {notation(self)}"
        return f"{under} {_why_passed(self, at) if at.level('passing') else _why_none(self, at)}"

    @property
    def needs(self) -> Needs:
        return Needs(trail=self.n, later_blocks=not self.gate)

    def __call__(self, view: View, scores: Scores) -> Tensor:
        return _or_best(self._ready(view, scores), view, scores)

    def gauge(self, view: View, scores: Scores, chosen: Tensor) -> dict[str, Tensor]:
        """The best score of each row and how many are ready, for traces: [B] each."""
        return {"best": _best_value(view, scores), "passing": self._ready(view, scores).sum(-1)}

    def _ready(self, view: View, scores: Scores) -> Tensor:
        calm = (view.declared("trail")[..., -self.n :] < self.kl).all(-1)
        ready = calm & _passes(scores.value, self.conf, self.test) & view.masked
        return ready & (view.progress.step >= self.n - 1)[:, None] if self.gate else ready


def _why_none(klass: Klass, at: Standing) -> str:
    gated = klass.gate and at.step < klass.n - 1
    early = f"the block was in its first {klass.n - 1} steps"
    cause, which = early if gated else "no candidate was sure and calm", at.place
    return (
        f"{cause}, so only the best one was committed, and this was {'it' if at.taken else which}"
    )


def _why_passed(klass: Klass, at: Standing) -> str:
    sign, passed = ">" if klass.test == "gt" else ">=", "passed" if at.taken else "did not pass"
    moved = at.moved("cur_prev")
    newest = "" if math.isnan(moved) else f" (the newest: {number(moved)})"
    return (
        f"it {passed} score {sign} {number(klass.conf)} (it had {beside(at.score, klass.conf)}) "
        f"and the last {klass.n} KL(current || previous) < {number(klass.kl)}{newest}"
    )


@register(
    "select", "hierarchy", "best of each masked run if > low, and all > tau", "dInfer's hierarchy"
)
@dataclass(frozen=True)
class Hierarchy:
    """The best position of every run of neighbouring masks if above low, and all above tau."""

    tau: float = 0.9
    low: float = 0.4

    grid = "{0.6,0.7,0.8,0.9,0.95}"
    needs = Needs()

    def __post_init__(self) -> None:
        require(self.low <= self.tau, f"hierarchy: low must be <= tau, got {self.low}")

    def describe(self) -> str:
        return (
            f"Commit the best position of each run of neighbouring masks if it is above "
            f"{show(self.low)}, every position above {show(self.tau)}, and the best of all."
        )

    def why(self, at: Standing) -> str:
        under, score = f"under {notation(self)}", number(at.score)
        leads = at.rank == min(at.ranks[position] for position in _run_of(at))
        if at.taken and at.rank == 1:
            return f"{under} the best of all always goes, and it was that"
        if at.taken and leads:
            return f"{under} the best of its run of masks goes, and it was that, with {score}"
        if at.taken:
            return f"{under} its score, {score}, was above {number(self.tau)}"
        level, which = (self.low, "the best") if leads else (self.tau, "all but the best")
        return (
            f"{under} {which} of a run of masks must have more than {number(level)}; it had {score}"
        )

    def __call__(self, view: View, scores: Scores) -> Tensor:
        order = best_first(scores.key, view.masked)
        leads = _best_of_runs(view.masked, order)
        chosen = (leads & (scores.value > self.low)) | (scores.value > self.tau)
        return (chosen & view.masked) | first_in(order, 1, view.masked)


def _best_of_runs(masked: Tensor, order: Tensor) -> Tensor:
    """The best position of every run of neighbouring masks: [B, W] bool."""
    rank = order.argsort(-1)  # [B, W], 0 is the best
    starts = masked & ~torch.nn.functional.pad(masked, (1, -1))
    run = starts.cumsum(-1)  # [B, W], neighbouring masks share a number
    worst = torch.full_like(torch.nn.functional.pad(rank, (0, 1)), rank.shape[-1])
    leader = worst.scatter_reduce(-1, run, torch.where(masked, rank, rank.shape[-1]), "amin")
    return masked & (rank == leader.gather(-1, run))


def _run_of(at: Standing) -> list[int]:
    """The neighbouring candidates around a position, itself included."""
    first = last = at.position
    while first - 1 in at.ranks:
        first -= 1
    while last + 1 in at.ranks:
        last += 1
    return list(range(first, last + 1))


@register("select", "ar", "leftmost run with S >= tau, at least one", "d2Cache's ar")
@dataclass(frozen=True)
class LeftToRight:
    """The masks from the left without a gap, while their score is at least tau; at least k."""

    tau: float = 1.0
    k: int = 1

    grid = "{0.6,0.7,0.8,0.9,0.95,1}"
    adaptive = False  # a missing history must not change the order
    needs = Needs()

    def __post_init__(self) -> None:
        require_whole("ar: k", self.k, 1)

    def describe(self) -> str:
        return (
            f"Commit from the leftmost mask on while the score is at least {show(self.tau)}; at "
            f"least {self.k}."
        )

    def why(self, at: Standing) -> str:
        under, score = f"under {notation(self)}", f"its score was {number(at.score)}"
        if at.taken:
            return f"{under} it and all masks left of it were committed; {score}"
        first = min(at.ranks.keys() - at.selected)
        if first != at.position:
            return f"{under} position {first}, left of it, had to wait"
        if at.position - 1 not in at.selected:
            return f"{under} a token that was fixed before ends the run of masks left of it"
        free = "the leftmost" if self.k == 1 else f"the leftmost {self.k}"
        return (
            f"{under} the masks left of it were committed; {score}, and all but {free} must "
            f"have at least {number(self.tau)}"
        )

    def __call__(self, view: View, scores: Scores) -> Tensor:
        begun = view.masked.cumsum(-1) > 0  # [B, W], from the leftmost mask on
        few = begun.cumsum(-1) <= self.k
        sure = scores.value >= self.tau
        return _unbroken(view.masked & sure, begun) | _unbroken(view.masked & few, begun)


def _unbroken(good: Tensor, begun: Tensor) -> Tensor:
    """True from the first begun position up to the first that is not good: [B, W]."""
    return (good | ~begun).to(torch.uint8).cummin(-1).values.bool() & begun
