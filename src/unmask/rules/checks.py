"""Checks what scores, modulators and selections return, users' own among them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from unmask.errors import RuleError
from unmask.rules.registry import spelled
from unmask.rules.view import Scores, View

ROUNDING = 1e-6  # by which a probability may exceed 1


def checked_scores(result: Any, part: Any, view: View) -> Scores:
    """The result of a score; raises if its unit is not known, or not what it says."""
    if isinstance(result, Tensor):
        raise RuleError(_without_unit(result, part, view))
    scores = checked_modulation(result, part, view)
    if scores.logarithmic and not _most(scores.value) <= 1 + ROUNDING and _above_one(scores, view):
        most = float(scores.value[view.masked].max())
        raise RuleError(
            f"{spelled(part)} gave {most:g} as a probability, which is at most 1; a number that "
            "only ranks is a log-utility: write `return unmask.Scores.log_utility(...)` around it"
        )
    return scores


def _without_unit(scores: Tensor, part: Any, view: View) -> str:
    """What to write instead of a plain tensor: first what its numbers look like."""
    inside = scores[view.masked] if scores.shape == view.masked.shape else scores
    units = ("probability", "log_utility")
    likely, other = units if bool(((inside >= 0) & (inside <= 1)).all()) else units[::-1]
    return (
        f"{spelled(part)} returned a plain tensor, whose unit is not known; write "
        f"`return unmask.Scores.{likely}(...)` around it, or unmask.Scores.{other}(...): a "
        "probability is a number in [0, 1]; a log-utility is a logarithm, or a number that ranks"
    )


def checked_modulation(scores: Any, part: Any, view: View) -> Scores:
    """The result of a score or modulator; raises unless it is a number for every position."""
    if not isinstance(scores, Scores):
        raise RuleError(
            f"{spelled(part)} must return Scores, as in `return scores - penalty`, got "
            f"{type(scores).__name__}"
        )
    if scores.key.shape != view.masked.shape:
        raise RuleError(
            f"{spelled(part)} must give a score for each of {tuple(view.masked.shape)} positions, "
            f"got {tuple(scores.key.shape)}"
        )
    if math.isnan(_most(scores.key)) and _misses(scores, view):
        raise RuleError(f"{spelled(part)} gave NaN for a masked position")
    return scores


def _most(numbers: Tensor) -> float:
    """The largest number, NaN if there is one: a quick test before the exact one."""
    return float(numbers.max()) if numbers.numel() else 0.0


def _above_one(scores: Scores, view: View) -> bool:
    return bool(((scores.value > 1 + ROUNDING) & view.masked).any())


def _misses(scores: Scores, view: View) -> bool:
    """Whether a position that is ranked has NaN."""
    ranked = view.masked if view.deferred is None else view.masked & ~view.deferred
    return bool((scores.key.isnan() & ranked).any())


def checked_candidates(left: Any, part: Any, view: View) -> Tensor:
    """What a candidates stage leaves; raises unless it leaves some of the candidates."""
    if not isinstance(left, Tensor) or left.dtype != torch.bool or left.shape != view.masked.shape:
        raise RuleError(
            f"{spelled(part)} must return a bool tensor of shape {tuple(view.masked.shape)}, True "
            "where a position may be chosen"
        )
    kept = left & view.masked
    if bool((view.masked.any(-1) & ~kept.any(-1)).any()):
        raise RuleError(f"{spelled(part)} left no candidate; it must leave at least one")
    return kept


def check_chosen(chosen: Any, select: Any, view: View) -> None:
    """Raise unless a selection chose masks, with a bool for every position."""
    if not isinstance(chosen, Tensor) or chosen.dtype != torch.bool:
        kind = chosen.dtype if isinstance(chosen, Tensor) else type(chosen).__name__
        raise RuleError(
            f"{spelled(select)} must return a bool tensor, True where it commits, "
            f"got {kind}; compare, as in scores.key > 0.5"
        )
    if chosen.shape != view.masked.shape:
        raise RuleError(
            f"{spelled(select)} must choose among {tuple(view.masked.shape)} positions, "
            f"got a tensor of shape {tuple(chosen.shape)}"
        )
    if bool((chosen > view.masked).any()):
        raise RuleError(f"{spelled(select)} chose a position that is not masked or not a candidate")
