"""What a part may keep from step to step, and what a revocation may do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from unmask.errors import RuleError
from unmask.rules.view import View


@dataclass(frozen=True)
class PartMemory:
    """A number that a part remembers from step to step: one per position, or one per row.

    Decoding keeps it with the row. The part reads it with `of` and gives new values in `remember`.
    """

    name: str  # with the name of the part, such as "less.tokens"
    start: float | bool  # its value before the first step; its type is the type of the memory
    size: tuple[int, ...] = ()  # further axes
    row: bool = False  # one per row, [B, ...]; else one per position, [B, W, ...]
    sequence: bool = False  # kept in later windows; else it starts anew in each

    def __post_init__(self) -> None:
        if type(self.start) not in (bool, int, float):
            raise RuleError(
                f"the memory {self.name} must start with a number or a bool, got {self.start!r}"
            )

    @property
    def dtype(self) -> torch.dtype:
        """bool, int64 or float64, by the start value."""
        kinds = {bool: torch.bool, int: torch.int64, float: torch.float64}
        return kinds[type(self.start)]

    def shape(self, view: View) -> tuple[int, ...]:
        """The shape of its values in a step: [B, ...] or [B, W, ...]."""
        return (*(view.masked.shape[:1] if self.row else view.masked.shape), *self.size)

    def of(self, view: View) -> Tensor:
        """What is remembered; the start value where the view holds nothing."""
        if self.name in view.memory:
            return view.memory[self.name]
        return torch.full(self.shape(view), self.start, dtype=self.dtype)


@dataclass(frozen=True)
class Edit:
    """What a revocation does to committed positions: masks some again, writes others anew."""

    masked: Tensor  # [B, W] bool: masked again
    written: Tensor | None = None  # [B, W] bool: get a token anew
    tokens: Tensor | None = None  # [B, W] which tokens; None: those of the view
    held: Tensor | None = None  # [B] bool: the window stays open though it has no mask


Revoke = Callable[[View], Edit | Tensor]  # a plain tensor: what is masked again


class Window(Protocol):
    """A part that says where windows end; they begin at the next mask."""

    def reach(self, answer_length: Tensor, block: int | None) -> Tensor:
        """The greatest width of a window: [B] -> [B]."""

    def __call__(self, view: View, block: int | None) -> Tensor:
        """Where windows end that were opened just now, by their first forward: columns, [B]."""
