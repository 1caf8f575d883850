"""The count rule of dllm: an even share of the masks that are left, rounded half to even."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from unmask.errors import require_whole
from unmask.rules.registry import register
from unmask.rules.schedules import Timetable
from unmask.rules.view import View


@register(
    "select",
    "even",
    "the k_t best, k_t = rint(masks left / steps left), half to even",
    "dllm's MDLM and BD3LM samplers",
    note="It is neither LLaDA's timetable (`static`) nor Dream's (`timesteps`).",
)
@dataclass(frozen=True)
class Even(Timetable):
    """dllm's timetable: in each step the masks left over the steps left, rounded half to even.

    The blocks share the steps, rounded up. Steps that would commit nothing are left out. The ratio
    is computed in float32, as in dllm.
    """

    steps: int = 128

    def __post_init__(self) -> None:
        require_whole("even: steps", self.steps, 1)

    def describe(self) -> str:
        return (
            f"Commit the masks that are left over the steps that are left of {self.steps} (over "
            "all blocks), rounded half to even; leave out the steps that would commit none."
        )

    def _count(self, view: View) -> Tensor:
        p = view.progress
        steps = (-(-self.steps // p.num_windows)).tolist()  # shared by the blocks, rounded up
        rows = zip(steps, p.opened.tolist(), p.step.tolist(), strict=True)
        counts = [_count_of(masks, count, step) for count, masks, step in rows]
        return torch.tensor(counts, device=p.step.device)


def _count_of(masks: int, steps: int, step: int) -> int:
    """The count of one step; after the last (where masks were taken back), everything."""
    counts = _counts(masks, steps)
    return counts[step] if step < len(counts) else masks


@lru_cache(maxsize=256)
def _counts(masks: int, steps: int) -> tuple[int, ...]:
    """How many of so many masks each step commits, without the steps that commit none."""
    t = torch.arange(steps, -1, -1, dtype=torch.float64).div(steps).float()
    kept = (1 - (1 - t[1:])) / (1 - (1 - t[:-1]))  # the share of the masks that stays, float32
    counts = []
    for share in (1 - kept.double()).tolist():
        count = min(round(masks * share), masks)
        counts.append(count)
        masks -= count
    return tuple(count for count in counts if count)
