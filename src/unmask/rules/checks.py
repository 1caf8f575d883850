"""Checks what parts return, users' own among them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from unmask.errors import RuleError, UnknownName
from unmask.rules.memory import PartMemory
from unmask.rules.registry import spelled
from unmask.rules.view import Scores, View

ROUNDING = 1e-6  # by which a probability may exceed 1


def checked_scores(result: Any, part: Any, view: View) -> Scores:
    """The result of a score; raises if its unit is not known, or not what it says."""
    if isinstance(result, Tensor):
        raise RuleError(_without_unit(result, part, view))
    if not isinstance(result, Scores):
        raise RuleError(
            f"{spelled(part)} must return unmask.Scores.probability(...) or "
            f"unmask.Scores.log_utility(...), got {type(result).__name__}"
        )
    _check_shape(result, part, view)
    if result.logarithmic and (wrong := _no_probability(result.value, view)) is not None:
        raise RuleError(
            f"{spelled(part)} gave {wrong:g} as a probability, which is in [0, 1]; a number that "
            "only ranks is a log-utility: write `return unmask.Scores.log_utility(...)` around it"
        )
    return checked_modulation(result, part, view)


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
    """The result of a modulator; raises unless it is a number for every position."""
    if not isinstance(scores, Scores):
        raise RuleError(
            f"{spelled(part)} must return Scores, as in `return scores - penalty`, got "
            f"{type(scores).__name__}"
        )
    _check_shape(scores, part, view)
    if math.isnan(_most(scores.key)) and _misses(scores, view):
        raise RuleError(f"{spelled(part)} gave NaN for a masked position")
    return scores


def _check_shape(scores: Scores, part: Any, view: View) -> None:
    if scores.key.shape != view.masked.shape:
        raise RuleError(
            f"{spelled(part)} must give a score for each of {tuple(view.masked.shape)} positions, "
            f"got {tuple(scores.key.shape)}"
        )


def _most(numbers: Tensor) -> float:
    """The largest number, NaN if there is one: a quick test before the exact one."""
    return float(numbers.max()) if numbers.numel() else 0.0


def _no_probability(values: Tensor, view: View) -> float | None:
    """A number of a masked position that is below 0 or above 1, or None."""
    if _most((values - 0.5).abs()) <= 0.5 + ROUNDING:
        return None
    inside = values[view.masked]
    outside = inside[(inside < -ROUNDING) | (inside > 1 + ROUNDING)]
    return float(outside[0]) if outside.numel() else None


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
    """Raise unless a selection or limit chose masks, with a bool for every position."""
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


def checked_memory(
    new: Any, part: Any, declared: Sequence[PartMemory], view: View
) -> Mapping[str, Tensor]:
    """What a part remembers after a step; raises unless it declared these names and shapes."""
    if not isinstance(new, Mapping):
        raise RuleError(
            f"{spelled(part)}: remember must return new values by name, got {type(new).__name__}"
        )
    shapes = {memory.name: memory.shape(view) for memory in declared}
    for name, value in new.items():
        if name not in shapes:
            raise UnknownName(f"memory of {spelled(part)}", name, shapes)
        if not isinstance(value, Tensor) or tuple(value.shape) != shapes[name]:
            got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise RuleError(
                f"{spelled(part)}: {name} must be a tensor of shape {shapes[name]}, got {got}"
            )
    return new
