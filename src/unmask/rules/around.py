"""Parts around a modulator: they stand behind it and change where it acts, or what it reads.

They take a rule apart: what is left of a gain if the modulator acts on end tokens alone, or on a
signal that belongs to another position? `unmask dissect` runs them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from unmask.errors import RuleError, require
from unmask.rules.part import Modulation
from unmask.rules.registry import abilities_of, notation, register
from unmask.rules.stability import Stability
from unmask.rules.view import Needs, Scores, View

if TYPE_CHECKING:
    from unmask.rules.rule import Rule
    from unmask.rules.view import Modulate, Select

_WHERE = {
    "ends": "whose token would end the answer",
    "others": "whose token would not end the answer",
    "first": "that have no history, in the first forward of a window",
}
_SIGNAL = {
    "mean": "the mean D of the row's masks",
    "shuffled": "the D of another mask of the row, drawn anew in each forward",
}


@register(
    "modulate", "only", "the modulator there, the score as it was elsewhere", "unmask dissect"
)
@dataclass(frozen=True)
class Only:
    """Lets the modulator before it act on some positions only.

    where: `ends` are positions whose token would end the answer, `others` all other positions;
        `first` are positions without a history in the first forward of a window: the start of SWD.
    """

    where: Literal["ends", "others", "first"] = "ends"

    @property
    def needs(self) -> Needs:
        return Needs(ends=self.where != "first")

    def describe(self) -> str:
        return f"Let the modulator before this part act only on positions {_WHERE[self.where]}."

    def check_rule(self, rule: Rule) -> None:
        """Raise unless it stands behind a modulator that keeps the unit of the score."""
        inner = modulator_before(self, rule)
        if isinstance(inner, Stability) and inner.form != "additive":
            raise RuleError(
                f"{notation(self)} cannot mix scores before and after swd(form={inner.form}), "
                "which have different units; use form=additive"
            )

    def around(self, modulation: Modulation) -> Modulation:
        """The modulator, and its `ready`, at these positions only."""
        ready = modulation.ready and partial(_ready_there, self, modulation.ready)
        return Modulation(partial(_apply_there, self, modulation.apply), ready)

    def __call__(self, view: View, scores: Scores) -> Scores:
        """Without the modulator there is nothing to change."""
        return scores

    def positions(self, view: View) -> Tensor:
        """Where the modulator acts: [B, W]."""
        if self.where == "first":
            return ~view.seen & (view.progress.step == 0)[:, None]
        ends = view.declared("ends")
        return ends if self.where == "ends" else ~ends


def _apply_there(part: Only, modulate: Modulate, view: View, scores: Scores) -> Scores:
    """The scores after the modulator at these positions, as they were elsewhere."""
    after, here = modulate(view, scores), part.positions(view)
    require(
        after.logarithmic == scores.logarithmic,
        f"{notation(part)}: the modulator before it changes the unit of the score",
    )
    key = torch.where(here, after.key, scores.key)
    return Scores(key, torch.where(here, after.value, scores.value), scores.logarithmic)


def _ready_there(part: Only, ready: Select, view: View, base: Scores) -> Tensor:
    """As the modulator says at these positions; all others may go. Every row keeps at least one."""
    some = view.masked & torch.where(part.positions(view), ready(view, base), view.masked)
    return torch.where(some.any(-1, keepdim=True), some, view.masked)


@register("modulate", "signal", "the modulator with another D", "unmask dissect")
@dataclass(frozen=True)
class Signal:
    """Shows the modulator before it another D than the position's own.

    kind: `mean` is the mean D of the row's masks: how much moves, but not where. `shuffled` is the
        D of another mask of the same row, drawn anew in each forward: the same values elsewhere.
    """

    kind: Literal["mean", "shuffled"] = "mean"

    @property
    def needs(self) -> Needs:
        return Needs(draws=self.kind == "shuffled")

    def describe(self) -> str:
        return f"Show the modulator before this part {_SIGNAL[self.kind]}, instead of its own D."

    def check_rule(self, rule: Rule) -> None:
        """Raise unless it stands behind a modulator that reads D."""
        inner = modulator_before(self, rule)
        require(
            isinstance(inner, Stability) or abilities_of(inner).needs.history,
            f"{notation(self)} replaces D, which {notation(inner)} does not read; remove it",
        )

    def around(self, modulation: Modulation) -> Modulation:
        """The modulator with the other D; its `ready` stays."""
        return Modulation(partial(self._apply, modulation.apply), modulation.ready)

    def __call__(self, view: View, scores: Scores) -> Scores:
        """Without the modulator there is nothing to change."""
        return scores

    def _apply(self, modulate: Modulate, view: View, scores: Scores) -> Scores:
        fields = ("kl_prev_cur", "kl_cur_prev", "trail")
        signals = {name: view.tensors()[name] for name in fields if name in view.tensors()}
        moved: dict[str, Any] = {name: self.moved(view, each) for name, each in signals.items()}
        return modulate(replace(view, **moved), scores)

    def moved(self, view: View, signal: Tensor) -> Tensor:
        """The signal as the modulator sees it: [B, W] or [B, W, n], as it came."""
        if signal.ndim == 3:
            return torch.stack([self.moved(view, each) for each in signal.unbind(-1)], -1)
        if self.kind == "mean":
            return _row_mean(signal, view.masked)
        return signal.gather(-1, _neighbours(view))


def modulator_before(part: object, rule: Rule) -> Modulate:
    """The modulator that a part stands around; an error if there is none."""
    before = []
    for each in rule.modulators:
        if each is part:
            break
        before += [each] if abilities_of(each).around is None else []
    if not before:
        raise RuleError(
            f"{notation(part)} changes the modulator before it, and there is none; "
            f"write for example 'confidence | swd(5) | {notation(part)} | eb(0.1)'"
        )
    return before[-1]


def _row_mean(signal: Tensor, masked: Tensor) -> Tensor:
    """The mean over a row's masks, for every position: [B, W]; summed from left to right."""
    total = torch.where(masked, signal, 0.0).cumsum(-1)[..., -1:]  # padding changes no bit
    return (total / masked.sum(-1, keepdim=True).clamp_min(1)).expand_as(signal)


def _neighbours(view: View) -> Tensor:
    """For every mask the next one of its row on a circle in random order: [B, W].

    A mask is its own neighbour only if it is the last of its row.
    """
    draws = torch.where(view.masked, view.declared("draws"), torch.inf)
    order = draws.argsort(dim=-1, stable=True)  # [B, W]  the masks first
    count = view.masked.sum(-1, keepdim=True)
    rank = torch.arange(order.shape[-1], device=order.device).expand_as(order)
    following = torch.where(rank + 1 < count, rank + 1, torch.where(rank < count, 0, rank))
    return torch.empty_like(order).scatter(-1, order, order.gather(-1, following))
