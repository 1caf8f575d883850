"""AdaBlock: a block ends at the delimiter that the model predicts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.errors import require
from unmask.rules.registry import register, show
from unmask.rules.select import best_first
from unmask.rules.view import Needs, View


@register(
    "window",
    "adablock",
    "the block ends at the surest delimiter with p >= tau, else after `block`",
    "AdaBlock-dLLM",
)
@dataclass(frozen=True)
class AdaBlock:
    """A block ends at the delimiter that the model is surest of, or after the usual width.

    The first forward of a block looks for it in the next `part` of the answer's length.
    ids: delimiters, separated by `-`. The default is the newline of the GPT-2 and Qwen tokenizers;
        look it up for another model.
    """

    ids: str = "198"
    tau: float = 0.3
    part: float = 0.25

    needs = Needs()

    def __post_init__(self) -> None:
        good = all(word.isdecimal() for word in self.ids.split("-"))
        require(good, f"adablock: ids must be token ids such as 198-13, got {self.ids!r}")
        require(0 < self.part <= 1, f"adablock: part must be in (0, 1], got {self.part}")

    def describe(self) -> str:
        return (
            f"End a block at the likeliest delimiter ({self.ids}) if it has at least "
            f"{show(self.tau)}, within {show(100 * self.part)} % of the answer's length."
        )

    def reach(self, answer_length: Tensor, block: int | None) -> Tensor:
        usual = answer_length if block is None else torch.full_like(answer_length, block)
        return torch.maximum(usual, (answer_length * self.part).long())

    def __call__(self, view: View, block: int | None) -> Tensor:
        length, place = view.progress.answer_length, torch.arange(view.masked.shape[-1])
        first = view.masked.to(torch.uint8).argmax(-1)
        near = place < (first + (length * self.part).long())[:, None]
        ids = torch.tensor([int(word) for word in self.ids.split("-")])
        ends = view.masked & near & torch.isin(view.token, ids)
        surest = best_first(view.confidence, ends)[:, :1]  # [B, 1]
        sure = ends.any(-1) & (view.confidence.gather(-1, surest)[:, 0] >= self.tau)
        rest = length - view.progress.offset
        usual = rest if block is None else torch.minimum(rest, first + block)
        return torch.where(sure, surest[:, 0] + 1, usual)
