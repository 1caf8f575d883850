"""LESS: commits a token once its likeliest tokens have stopped moving."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.errors import require, require_whole
from unmask.rules.memory import PartMemory
from unmask.rules.part import Standing
from unmask.rules.registry import notation, register, show
from unmask.rules.rule import Decision
from unmask.rules.schedules import even_share
from unmask.rules.select import best_first, first_in, leftmost
from unmask.rules.view import Needs, Scores, View
from unmask.rules.words import beside, number

TOP = 8  # likeliest tokens that are compared; all others are one more
_TINY = 1e-12
TOKENS = PartMemory("less.tokens", -1, (TOP,))  # the likeliest of the last forward
WEIGHTS = PartMemory("less.weights", 0.0, (TOP,))  # and their probabilities
WAIT = PartMemory("less.wait", 0, row=True)  # how often the leftmost mask was passed over


def top_drift(tokens: Tensor, p: Tensor, old_tokens: Tensor, q: Tensor) -> Tensor:
    """Jensen-Shannon divergence of the likeliest tokens and the rest, in nats: [..., k] -> [...].

    It is at most log 2.
    """
    same = tokens[..., :, None] == old_tokens[..., None, :]  # [..., k, k]
    q_there = (same * q[..., None, :]).sum(-1)  # of the tokens that are likely now
    p_there = (same * p[..., :, None]).sum(-2)  # of those that were likely before
    p_rest, q_rest = (1 - p.sum(-1)).clamp_min(0), (1 - q.sum(-1)).clamp_min(0)
    p, q_there = torch.cat([p, p_rest[..., None]], -1), torch.cat([q_there, q_rest[..., None]], -1)
    q, p_there = torch.cat([q, q_rest[..., None]], -1), torch.cat([p_there, p_rest[..., None]], -1)
    return ((_half(p, q_there) + _half(q, p_there)) / 2).clamp_min(0)


def _half(a: Tensor, b: Tensor) -> Tensor:
    """The sum of a log(a / m), m = (a + b) / 2."""
    return (a * ((a + _TINY).log() - ((a + b) / 2 + _TINY).log())).sum(-1)


@dataclass(frozen=True)
class _Persistent:
    """What both forms of LESS share: the test of a position, and the memory that it needs."""

    conf: float = 0.75
    drift: float = 0.04
    persist: int = 2
    steps: int = 0

    def __post_init__(self) -> None:
        require(self.drift >= 0, f"less: drift must be >= 0, got {self.drift}")
        require_whole("less: persist", self.persist, 1)
        require(self.persist <= 64, f"less: persist must be at most 64, got {self.persist}")
        require_whole("less: steps", self.steps, 0)

    @property
    def memory(self) -> tuple[PartMemory, ...]:
        return PartMemory("less.last", -1, (self.persist,)), TOKENS, WEIGHTS, WAIT

    def remember(self, view: View, decision: Decision) -> dict[str, Tensor]:
        last = self.memory[0].of(view)
        newest = torch.cat([last[..., 1:], view.token[..., None]], -1)
        return {
            "less.last": torch.where(view.masked[..., None], newest, last),
            TOKENS.name: _newest(view, TOKENS, view.declared("top_tokens")),
            WEIGHTS.name: _newest(view, WEIGHTS, view.declared("top_probabilities")),
        }

    def _ready(self, view: View, scores: Scores) -> Tensor:
        same = (self.memory[0].of(view) == view.token[..., None]).all(-1)
        return view.masked & same & (_moved(view) <= self.drift) & (scores.value >= self.conf)

    def gauge(self, view: View, scores: Scores, chosen: Tensor) -> dict[str, Tensor]:
        """How many positions of each row pass the test, for traces: [B]."""
        return {"passing": self._ready(view, scores).sum(-1)}

    def why(self, at: Standing) -> str:
        under, passing = f"under {notation(self)}", number(at.level("passing"))
        passed = "it was sure, lasting and calm" if at.taken else "it was not taken"
        told = f"{passing} candidates passed; {passed}"
        if at.level("passing") == 0:
            told = f"no candidate was sure, lasting and calm, and it was {at.place}"
        return f"{under} {told}; its score was {beside(at.score, self.conf)}"


def _test(part: _Persistent) -> str:
    """What a position must pass, in words."""
    return (
        f"its score is at least {show(part.conf)}, its token was the likeliest in the last "
        f"{part.persist + 1} forwards, and its 8 likeliest tokens have moved by at most "
        f"{show(part.drift)} nats (Jensen-Shannon)"
    )


def _newest(view: View, memory: PartMemory, now: Tensor) -> Tensor:
    """The memory of the likeliest tokens with this forward's where there is a mask: [B, W, k]."""
    kept, count = memory.of(view).clone(), now.shape[-1]  # a small vocabulary has fewer than k
    kept[..., :count] = torch.where(view.masked[..., None], now, kept[..., :count])
    return kept


def _moved(view: View) -> Tensor:
    """The drift since the forward before; 1 without one: [B, W]."""
    tokens, q = TOKENS.of(view), WEIGHTS.of(view)
    now, p = view.declared("top_tokens"), view.declared("top_probabilities")
    drift = top_drift(now, p, tokens[..., : now.shape[-1]], q[..., : now.shape[-1]])
    return torch.where(tokens[..., 0] >= 0, drift, 1.0)


@register(
    "select",
    "less",
    "{ i : S_i >= conf, argmax lasts, JS8_i <= drift }, else the share of a timetable",
    "LESS Is More, for LLaDA",
    note="Equal to the authors' code in every golden case, but theirs leaves masks if it has fewer "
    "steps than tokens. The published figures were not repeated.",
)
@dataclass(frozen=True)
class Less(_Persistent):
    """Every position that is sure, whose token has lasted and whose likeliest tokens are calm.

    The token must have been the likeliest in `persist` forwards before this one. If no position
    passes, the best are taken: one, or with `steps` the share of LLaDA's timetable.
    """

    grid = "{0.45,0.6,0.75,0.9}"
    needs = Needs(top=TOP)

    def describe(self) -> str:
        share = f"the share of a timetable of {self.steps} steps" if self.steps else "the best one"
        return f"Commit every position if {_test(self)}; if there is none, {share}."

    def __call__(self, view: View, scores: Scores) -> Tensor:
        ready = self._ready(view, scores)
        count = even_share(self.steps, view.progress) if self.steps else 1
        best = first_in(best_first(scores.key, view.masked), count, view.masked)
        return torch.where(ready.any(-1, keepdim=True), ready, best)


@register(
    "select",
    "less_dream",
    "from the leftmost mask while positions pass less; else the best of the next, or the leftmost",
    "LESS Is More, for Dream",
    note="Equal to the authors' code in every golden case, but there an end token in the prompt "
    "ends the run. The published figures were not repeated.",
)
@dataclass(frozen=True)
class LessDream(_Persistent):
    """From the leftmost mask on while positions pass the test of `less`; at times one ahead.

    If the leftmost mask does not pass, the best that passes among the next `window` positions is
    taken instead, `patience` times in a row; then the leftmost mask is taken at any score. An end
    token must be surer (`eos_conf`, less `eos_anneal` over the run) and calmer (`eos_drift` times
    the limit). With `stop`, all that is left is taken once everything before an end token is
    fixed; after `steps` steps it is taken too.
    """

    patience: int = 2
    window: int = 16
    eos_conf: float = 0.9
    eos_anneal: float = 0.1
    eos_floor: float = 0.55
    eos_drift: float = 0.5
    stop: bool = True

    grid = "{0.45,0.6,0.75,0.9}"
    needs = Needs(top=TOP, ends=True)
    adaptive = False  # the order is from left to right

    def describe(self) -> str:
        return (
            f"From the leftmost mask on, commit a position if {_test(self)}; if the leftmost does "
            f"not pass, the best of the next {self.window} that passes, at most {self.patience} "
            f"times in a row, else the leftmost. An end token must be surer and calmer."
        )

    def __call__(self, view: View, scores: Scores) -> Tensor:
        ready, first = self._ready(view, scores), leftmost(view)
        run = view.masked & ((view.masked & ~ready).cumsum(-1) == 0)
        near = ready & _near(first, self.window)
        ahead = first_in(best_first(scores.key, near), 1, near)
        waits = near.any(-1) & (WAIT.of(view) < self.patience)
        other = torch.where(waits[:, None], ahead, first)
        chosen = torch.where((ready & first).any(-1, keepdim=True), run, other)
        return torch.where(_over(self, view)[:, None], view.masked, chosen)

    def remember(self, view: View, decision: Decision) -> dict[str, Tensor]:
        went = (leftmost(view) & decision.chosen).any(-1)
        wait = torch.where(went, 0, WAIT.of(view) + 1)
        return {**super().remember(view, decision), WAIT.name: wait}

    def _ready(self, view: View, scores: Scores) -> Tensor:
        share = (view.progress.step + 1) / self.steps if self.steps else view.progress.step * 0.0
        level = (self.eos_conf - self.eos_anneal * share).clamp_min(self.eos_floor)[:, None]
        sure = (scores.value >= level) & (_moved(view) <= self.eos_drift * self.drift)
        return super()._ready(view, scores) & (sure | ~view.declared("ends"))


def _near(first: Tensor, window: int) -> Tensor:
    """The positions after the first one, at most `window` away: [B, W]."""
    begun = first.cumsum(-1)
    return (begun.cumsum(-1) - 1 <= window) & (begun > 0) & ~first


def _over(part: LessDream, view: View) -> Tensor:
    """True where everything that is left is taken: [B]."""
    step, ended = view.progress.step, view.progress.ended
    late = step >= part.steps if part.steps else step < 0
    return late | ended if part.stop and ended is not None else late
