"""The frontier window: only positions near the leftmost mask may be chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from unmask.errors import require, require_whole
from unmask.rules.registry import notation, register
from unmask.rules.view import Needs, View
from unmask.rules.words import counted

Unit = Literal["masks", "positions"]


def from_left(masked: Tensor, count: int, unit: Unit) -> Tensor:
    """The first `count` masks, or the masks within `count` positions of the leftmost: [B, W]."""
    reached = masked if unit == "masks" else masked.cumsum(-1) > 0
    return masked & (reached.cumsum(-1) <= count)


@register(
    "candidates",
    "frontier",
    "the first w masks from the left",
    "frontier-gated commitment, arXiv 2608.05687; DCD, arXiv 2601.02076 (with most)",
    note="The first text could not be read in full: whether its w counts masks or positions is "
    "not confirmed. DCD's window is known from its formulas only. No figure of either was "
    "repeated.",
)
@dataclass(frozen=True)
class Frontier:
    """Only masks near the leftmost mask of the block may be chosen; w = 1 is left to right.

    unit: `masks` counts w masks; `positions` counts w positions, fixed tokens among them.
    most: with masks, > 0 also allows no position so far from the leftmost mask (DCD's s_max).
    """

    w: int = 8
    unit: Unit = "masks"
    most: int = 0

    needs = Needs()

    def __post_init__(self) -> None:
        require_whole("frontier: w", self.w, 1)
        require_whole("frontier: most", self.most, 0)
        require(
            self.unit == "masks" or not self.most,
            f"frontier: most={self.most} goes with unit=masks; with unit=positions give w alone",
        )

    def describe(self) -> str:
        return f"Only {self._allowed()} may be chosen."

    def why(self) -> str:
        return f"{notation(self)} allows only {self._allowed()}"

    def _allowed(self) -> str:
        span = f", within {counted(self.most, 'position')}," if self.most else ""
        if self.unit == "masks":
            first = "leftmost mask" if self.w == 1 else f"first {self.w} masks"
            return f"the {first} of the block{span}"
        return f"masks within {counted(self.w, 'position')} of the leftmost one of the block"

    def __call__(self, view: View) -> Tensor:
        near = from_left(view.masked, self.w, self.unit)
        return near & from_left(view.masked, self.most, "positions") if self.most else near
