"""Checks what scores, modulators and selections return, users' own among them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unmask.errors import RuleError
from unmask.rules.registry import spelled
from unmask.rules.view import Scores, View


def checked_scores(result: Any, part: Any, view: View) -> Scores:
    """The result of a score or modulator; raises unless it is a number for every position."""
    scores = Scores.plain(result) if isinstance(result, Tensor) else result
    if not isinstance(scores, Scores) or scores.key.shape != view.masked.shape:
        shape = tuple(scores.key.shape) if isinstance(scores, Scores) else type(result).__name__
        raise RuleError(
            f"{spelled(part)} must give a score for each of {tuple(view.masked.shape)} positions, "
            f"got {shape}"
        )
    ranked = view.masked if view.deferred is None else view.masked & ~view.deferred
    if bool((scores.key.isnan() & ranked).any()):
        raise RuleError(f"{spelled(part)} gave NaN for a masked position")
    return scores


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
    if bool((chosen & ~view.masked).any()):
        raise RuleError(f"{spelled(select)} chose a position that is not masked")
