"""Stability-Weighted Decoding (SWD): lowers the score of positions that are not stable yet."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from unmask.errors import require
from unmask.rules.registry import register, show
from unmask.rules.select import best_one
from unmask.rules.view import Divergence, Needs, Scores, View
from unmask.rules.words import KL_WORDS

if TYPE_CHECKING:
    from unmask.rules.rule import Rule

_START = {
    "uniform": "Before there is any history, compare with the uniform distribution.",
    "single": "Before there is any history, rank by the score alone and commit only the best "
    "(a fixed number of positions stays that number).",
    "skip": "Before there is any history, take D = 0.",
}
_FORM = {
    "additive": "",
    "signed": " A negative score is multiplied by exp(+lam D).",
    "literal": " A negative score is multiplied by exp(-lam D), which rewards instability.",
    "bounded": "",
}

_LITERAL = (
    "swd(form=literal) is Eq. 8 as printed: with the negative entropy it rewards instability; use "
    "it for ablations only"
)


@register("modulate", "swd", "S * exp(-lam * D), i.e. log S - lam * D", "Eq. 7 and 8, Algorithm 1")
@dataclass(frozen=True)
class Stability:
    """Lowers the score of a token whose distribution still moves between two steps.

    Scores are log-utilities, so S * exp(-lam * D) is a subtraction: nothing underflows, and
    instability lowers every score (Eq. 8 taken literally would raise the negative entropy).
    At lam = 0 it changes nothing, bit for bit.

    kl: `prev_cur` is KL(previous || current), as Algorithm 1; `cur_prev` as the theorem. `js` is
        the Jensen-Shannon divergence, at most log 2; `tv` the total variation, at most 1.
    start: where there is no history, `uniform` compares with the uniform distribution, as
        Algorithm 1; `single` ranks by the base score and lets adaptive selections commit only the
        best; `skip` takes D = 0.
    form: for a negative score, `additive` is -H - lam D; `signed` is -H exp(lam D); `literal` is
        -H exp(-lam D), which rewards instability. `bounded` is log S - lam (1 - exp(-D)) for every
        score, so no D costs more than lam.
    scope: `sequence` keeps the history across blocks; `block` forgets it at each boundary.
    """

    lam: float = 5.0
    kl: Divergence = "prev_cur"
    start: Literal["uniform", "single", "skip"] = "uniform"
    form: Literal["additive", "signed", "literal", "bounded"] = "additive"
    scope: Literal["sequence", "block"] = "sequence"

    def __post_init__(self) -> None:
        require(0 <= self.lam < float("inf"), f"swd: lam must be >= 0 and finite, got {self.lam}")
        if self.form == "literal" and self.lam:
            warnings.warn(_LITERAL, stacklevel=3)

    @property
    def needs(self) -> Needs:
        if not self.lam:
            return Needs()
        uniform, block = self.start == "uniform", self.scope == "block"
        return Needs(kl=frozenset({self.kl}), uniform_start=uniform, block_scope=block)

    def describe(self) -> str:
        return _described(self) if self.lam else "Leave the score as it is: lam is 0."

    def check_rule(self, rule: Rule) -> None:
        """Raise if the rule has another SWD."""
        count = sum(isinstance(part, Stability) for part in rule.modulators)
        require(count == 1, "swd is given twice; its penalties add up, so use one with the sum")

    def __call__(self, view: View, scores: Scores) -> Scores:
        if not self.lam:
            return scores
        moved = view.instability(self.kl)
        penalty = self.lam * (-(-moved).expm1() if self.form == "bounded" else moved)
        if scores.logarithmic or self.form in ("additive", "bounded"):
            return scores - penalty
        return _multiplied(self, view, scores, penalty)

    def ready(self, view: View, base: Scores) -> Tensor:
        """The positions that an adaptive selection may choose: [B, W]."""
        waits = self.lam and self.start == "single"
        return _with_history(view, base) if waits else view.masked


def swd_of(rule: Rule) -> Stability | None:
    """The rule's SWD; None if it has none or lam is 0."""
    parts = rule.modulators
    return next((part for part in parts if isinstance(part, Stability) and part.lam), None)


def _with_history(view: View, base: Scores) -> Tensor:
    """The positions with a history; in a row without any, its best by the base score: [B, W]."""
    seen = view.masked & view.seen
    return torch.where(seen.any(-1, keepdim=True), seen, best_one(base.key, view))


def _multiplied(swd: Stability, view: View, scores: Scores, penalty: Tensor) -> Scores:
    """A score <= 0 times exp(penalty), or by its inverse if the form is literal."""
    negative = not bool((view.masked & (scores.value > 0)).any())
    require(negative, f"swd: form={swd.form} is for scores <= 0, such as entropy")
    return _in_log_domain(-scores.value, penalty if swd.form == "signed" else -penalty)


def _described(swd: Stability) -> str:
    lam, moved = show(swd.lam), "(1 - exp(-D))" if swd.form == "bounded" else "D"
    form = _FORM[swd.form] or f" From a negative score, such as -H, subtract {lam} D instead."
    scope = " Forget the history at each block boundary." if swd.scope == "block" else ""
    return (
        f"Lower the score of a position whose distribution still moves: multiply it by "
        f"exp(-{lam} {moved}), with D = {KL_WORDS[swd.kl]} between this forward and the last "
        f"one.{form} {_START[swd.start]}{scope}"
    )


def _in_log_domain(cost: Tensor, penalty: Tensor) -> Scores:
    """The score -cost * exp(penalty) for a cost >= 0, ranked without under- or overflow."""
    key = torch.where(cost > 0, -(cost.log() + penalty), torch.inf)
    return Scores(key, -(-key).exp())
