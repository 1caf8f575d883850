"""Prophet: fills the whole canvas at once when the answer's logits are far apart."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.errors import require, require_whole
from unmask.rules.registry import register, show
from unmask.rules.schedules import steps_per_window
from unmask.rules.view import Needs, Scores, View


@register(
    "limit",
    "prophet",
    "all masks at once if the mean logit gap >= bar(t)",
    "Prophet",
    note="With `static` equal to the authors' code in every golden case; theirs always looks at 5 "
    "positions. Published with prompts that fix where the final answer stands; elsewhere there is "
    "no such place. The figures were not repeated.",
)
@dataclass(frozen=True)
class Prophet:
    """Fills every mask of the canvas once the logits of the answer's key positions are far apart.

    The gap is the largest raw logit minus the next, on average over `length` positions from
    `answer` on, committed or not. The bar is `early`, `mid` or `late` in the thirds of `steps`.
    """

    answer: int = 0
    steps: int = 256
    early: float = 7.5
    mid: float = 5.0
    late: float = 2.5
    length: int = 5

    def __post_init__(self) -> None:
        require_whole("prophet: answer", self.answer, 0)
        require_whole("prophet: steps", self.steps, 1)
        require_whole("prophet: length", self.length, 1)
        require(self.length <= 4096, f"prophet: length must be at most 4096, got {self.length}")

    @property
    def needs(self) -> Needs:
        return Needs(gaps=(self.answer, self.length))

    def describe(self) -> str:
        bars = ", ".join(show(bar) for bar in (self.early, self.mid, self.late))
        return (
            f"Fill all masks of the canvas if the largest logit leads by {bars} (in the thirds of "
            f"{self.steps} steps), on average over {self.length} positions from {self.answer} on."
        )

    def finish(self, view: View) -> Tensor:
        """The rows that are filled at once: [B]."""
        p = view.progress
        assert p.gaps is not None
        share = (p.window * steps_per_window(self.steps, p) + p.step + 1) / self.steps
        late = torch.where(share < 0.67, self.mid, self.late)
        return p.gaps.nanmean(-1) >= torch.where(share < 0.33, self.early, late)  # NaN: no

    def __call__(self, view: View, scores: Scores, chosen: Tensor) -> Tensor:
        return torch.where(self.finish(view)[:, None], view.masked, chosen)
