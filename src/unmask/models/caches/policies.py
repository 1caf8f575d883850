"""Which positions a forward computes anew; the others keep the keys and values they had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.errors import RequestError
from unmask.models.denoiser import Canvas


@dataclass
class Memory:
    """What a cache knows of its rows, beside their keys and values."""

    computed: Tensor  # [B, L] bool: has keys and values at all
    tokens: Tensor  # [B, L] the tokens they were computed from
    start: Tensor  # [B] the window that was open then
    final: Tensor  # [B] positions before this never change again
    age: Tensor  # [B] forwards since everything was computed

    def opened(self, canvas: Canvas) -> Tensor:
        """True for rows that are new or have a new window: [B]."""
        return (self.start != canvas.start) | ~self.computed.any(-1)


Policy = Callable[[Canvas, Memory], Tensor]


def _place(canvas: Canvas) -> Tensor:
    return torch.arange(canvas.tokens.shape[-1])


@dataclass(frozen=True)
class PrefixCache:
    """Fast-dLLM's prefix cache: inside a window, everything before it is kept.

    An approximation: the kept keys and values do not see what the window commits.
    """

    def __call__(self, canvas: Canvas, memory: Memory) -> Tensor:
        return (_place(canvas) >= canvas.start[:, None]) | memory.opened(canvas)[:, None]


@dataclass(frozen=True)
class DualCache:
    """Fast-dLLM's dual cache: inside a window, everything before and after it is kept.

    An approximation, as the prefix cache; the next block has no history when it opens.
    """

    def __call__(self, canvas: Canvas, memory: Memory) -> Tensor:
        place = _place(canvas)
        inside = (place >= canvas.start[:, None]) & (place < canvas.stop[:, None])
        return inside | memory.opened(canvas)[:, None]


@dataclass(frozen=True)
class DelayedCache:
    """dKV-Cache: a token is kept one forward after it was committed; masks are computed anew.

    An approximation; `refresh` computes everything after that many forwards.
    """

    refresh: int = 8

    def __post_init__(self) -> None:
        if self.refresh < 1:
            raise RequestError(f"the delayed cache's refresh must be >= 1, got {self.refresh}")

    def __call__(self, canvas: Canvas, memory: Memory) -> Tensor:
        changed = canvas.tokens != memory.tokens
        due = (memory.age >= self.refresh) | ~memory.computed.any(-1)
        return canvas.masked | changed | due[:, None]


@dataclass(frozen=True)
class BlockCache:
    """Exact, for block-causal models: a finished block never sees what comes after it."""

    def __call__(self, canvas: Canvas, memory: Memory) -> Tensor:
        place = _place(canvas)
        return (place >= memory.final[:, None]) & (place < canvas.stop[:, None])


POLICIES: dict[str, Callable[[], Policy]] = {
    "prefix": PrefixCache,
    "dual": DualCache,
    "delayed": DelayedCache,
    "block": BlockCache,
}
