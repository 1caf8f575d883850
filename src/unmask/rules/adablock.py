"""AdaBlock: a block ends at the delimiter that the model predicts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unmask.errors import require
from unmask.rules.registry import register, show
from unmask.rules.select import best_first
from unmask.rules.view import Needs, View

if TYPE_CHECKING:
    from unmask.models.denoiser import ModelSpec

_NEWLINE = "newline"


@register(
    "window",
    "adablock",
    "the block ends at the surest delimiter with p >= tau, else after the usual width",
    "AdaBlock-dLLM",
    note="With `threshold` equal to the authors' code in every golden case. The published figures "
    "were not repeated.",
)
@dataclass(frozen=True)
class AdaBlock:
    """A block ends at the delimiter that the model is surest of, or after the usual width.

    The first forward of a block looks for it in the next `part` of the answer's length.
    ids: delimiters, separated by `-`; `newline` is the line break of the model's tokenizer.
    """

    ids: str = _NEWLINE
    tau: float = 0.3
    part: float = 0.25

    needs = Needs()

    def __post_init__(self) -> None:
        good = self.ids == _NEWLINE or all(word.isdecimal() for word in self.ids.split("-"))
        require(good, f"adablock: ids must be newline or ids such as 198-13, got {self.ids!r}")
        require(0 < self.part <= 1, f"adablock: part must be in (0, 1], got {self.part}")

    def describe(self) -> str:
        return (
            f"End a block at the likeliest delimiter ({self.ids}) if it has at least "
            f"{show(self.tau)}, within {show(100 * self.part)} % of the answer's length."
        )

    def for_model(self, spec: ModelSpec) -> AdaBlock:
        """With the line break of this model."""
        known = self.ids == _NEWLINE and spec.newline_id is not None
        return replace(self, ids=str(spec.newline_id)) if known else self

    def check_model(self, spec: ModelSpec) -> None:
        _check_delimiters(self.ids, spec)

    def reach(self, answer_length: Tensor, block: int | None) -> Tensor:
        usual = answer_length if block is None else torch.full_like(answer_length, block)
        return torch.maximum(usual, (answer_length * self.part).long())

    def __call__(self, view: View, block: int | None) -> Tensor:
        length, place = view.progress.answer_length, torch.arange(view.masked.shape[-1])
        first = view.masked.to(torch.uint8).argmax(-1)
        near = place < (first + (length * self.part).long())[:, None]
        ends = view.masked & near & torch.isin(view.token, _numbers(self.ids))
        surest = best_first(view.confidence, ends)[:, :1]  # [B, 1]
        sure = ends.any(-1) & (view.confidence.gather(-1, surest)[:, 0] >= self.tau)
        rest = length - view.progress.offset
        usual = rest if block is None else torch.minimum(rest, first + block)
        return torch.where(sure, surest[:, 0] + 1, usual)


def _check_delimiters(ids: str, spec: ModelSpec) -> None:
    """Raise unless all delimiters are tokens of the model."""
    require(
        ids != _NEWLINE,
        f"adablock: no token of {spec.name} is known to be a line break; give the ids of its "
        "delimiters, such as adablock(198)",
    )
    largest = int(_numbers(ids).max())
    require(
        largest < spec.vocab_size,
        f"adablock: {spec.name} has {spec.vocab_size} tokens, and {largest} is not one of them; "
        "give the ids of its delimiters",
    )


def _numbers(ids: str) -> Tensor:
    return torch.tensor([int(word) for word in ids.split("-")])
