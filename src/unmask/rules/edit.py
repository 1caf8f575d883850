"""Edits: committed tokens of the block are replaced when the model prefers another one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.errors import require, require_whole
from unmask.rules.memory import Edit, PartMemory
from unmask.rules.registry import register, show
from unmask.rules.rule import Decision
from unmask.rules.view import Needs, View
from unmask.rules.words import counted


@register(
    "revoke",
    "edit",
    "x_i <- argmax p_i where max p_i > tau and it differs",
    "SGLang's joint threshold; LLaDA2.1's token-to-token",
    note="With `threshold` and `penalty` equal to SGLang's code in every golden case. Published "
    "for LLaDA2.1, which was trained to edit; another model may confirm what it sees, or change "
    "it without end.",
)
@dataclass(frozen=True)
class TokenEdit:
    """Replaces a committed token of the block when the model now prefers another one above tau.

    A full block is looked at again until nothing changes, in at most `steps` forwards, and one to
    see that.
    """

    tau: float = 0.0
    steps: int = 16

    needs = Needs(fixed=True)
    memory = (PartMemory("edit.steps", 0, row=True),)

    def __post_init__(self) -> None:
        require(self.tau == self.tau, "edit: tau must be a number, got nan")
        require_whole("edit: steps", self.steps, 0)

    def describe(self) -> str:
        return (
            f"Replace a committed token of the block if another one has more than {show(self.tau)};"
            f" look at a full block again in up to {counted(self.steps, 'forward')}."
        )

    def why(self) -> str:
        return f"the model preferred another token with more than {show(self.tau)}"

    def __call__(self, view: View) -> Edit:
        over, none = self._spent(view) > self.steps, torch.zeros_like(view.masked)
        other = (view.token != view.declared("standing")) & (view.confidence > self.tau)
        written = view.revocable & other & ~over[:, None]
        changed = (written | view.declared("chosen")).any(-1)
        return Edit(none, written, held=changed & ~over)

    def remember(self, view: View, decision: Decision) -> dict[str, Tensor]:
        return {"edit.steps": self._spent(view)}

    def _spent(self, view: View) -> Tensor:
        """Forwards over the full block, this one included: [B]."""
        return self.memory[0].of(view) + (~view.masked.any(-1)).long()
