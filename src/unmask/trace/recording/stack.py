"""K steps of one row as one view and one decision with K rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from unmask.decoding.results import Step
from unmask.rules.memory import PartMemory
from unmask.rules.rule import Decision
from unmask.rules.view import Progress, Scores, View


@dataclass(frozen=True)
class Glimpse:
    """One row of a step."""

    step: Step
    row: int


@dataclass(frozen=True)
class Stack:
    """K steps of one row: [K, ...] each, windows padded on the right."""

    glimpses: Sequence[Glimpse]
    forward: list[int]
    start: Tensor  # [K]
    stop: Tensor  # [K]
    view: View
    decision: Decision

    @classmethod
    def of(cls, glimpses: Sequence[Glimpse], memory: Sequence[PartMemory]) -> Stack:
        """Stack the views and decisions of the steps; `memory` is what the rule remembers.

        Rules treat rows independently, so a rule decides all K steps of this view at once.
        """
        steps = [glimpse.step for glimpse in glimpses]
        shapes = {(step.view.masked.shape, step.view.progress.known.shape) for step in steps}
        starts = {each.name: each.start for each in memory}
        pile = _Pile([glimpse.row for glimpse in glimpses], len(shapes) == 1, starts)
        return cls(
            glimpses,
            pile([step.forward for step in steps]).tolist(),
            pile([step.start for step in steps]),
            pile([step.stop for step in steps]),
            pile.view([step.view for step in steps]),
            pile.decision([step.decision for step in steps]),
        )

    def __len__(self) -> int:
        return len(self.glimpses)


@dataclass(frozen=True)
class _Pile:
    """Stacks one row of each of K tensors."""

    rows: list[int]
    equal: bool  # all steps have the same shapes
    starts: Mapping[str, float | bool]  # what a memory holds beyond a window, by its name

    def __call__(self, tensors: list[Tensor], beyond: float | bool = 0) -> Tensor:
        """Stack row `rows[k]` of the k-th tensor, [B, ...]: [K, ...], padded with `beyond`."""
        if self.equal and tensors[0].shape[0] == 1:
            return torch.cat(tensors)
        rows = [tensor[row] for tensor, row in zip(tensors, self.rows, strict=True)]
        if self.equal or rows[0].ndim == 0:
            return torch.stack(rows)
        return pad_sequence(rows, batch_first=True, padding_value=beyond)

    def view(self, views: list[View]) -> View:
        first = views[0]
        fields = {name: self([getattr(view, name) for view in views]) for name in first.tensors()}
        progress = {
            name: self([getattr(view.progress, name) for view in views])
            for name, value in vars(first.progress).items()
            if value is not None
        }
        memory = {
            name: self([view.memory[name] for view in views], self.starts[name])
            for name in first.memory
        }
        return replace(first, progress=Progress(**progress), memory=memory, **fields)

    def decision(self, made: list[Decision]) -> Decision:
        base = self.scores([decision.base for decision in made])
        scores = base
        if made[0].scores is not made[0].base:
            scores = self.scores([decision.scores for decision in made])
        chosen = self([decision.chosen for decision in made])
        revoked = self([decision.revoked for decision in made])
        counts = [decision.least for decision in made if decision.least is not None]
        return Decision(base, scores, chosen, revoked, self(counts) if counts else None)

    def scores(self, made: list[Scores]) -> Scores:
        first = made[0]
        key = self([scores.key for scores in made])
        if first.value is first.key:
            return replace(first, key=key, value=key)
        return replace(first, key=key, value=self([scores.value for scores in made]))
