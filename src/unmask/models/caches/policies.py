"""Cache policies: which positions a forward recomputes; the others keep their keys and values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.errors import RequestError
from unmask.models.denoiser import Canvas


@dataclass
class Memory:
    """The state of a cache's rows, besides their keys and values."""

    computed: Tensor  # [B, L] bool: keys and values exist
    tokens: Tensor  # [B, L] the tokens that they were computed from
    start: Tensor  # [B] start of the window in the last forward
    final: Tensor  # [B] positions below this never change again
    age: Tensor  # [B] forwards since all positions were computed

    def opened(self, canvas: Canvas) -> Tensor:
        """True for rows that are new or entered a new window: [B]."""
        return (self.start != canvas.start) | ~self.computed.any(-1)


Policy = Callable[[Canvas, Memory], Tensor]


def _place(canvas: Canvas) -> Tensor:
    return torch.arange(canvas.tokens.shape[-1])


@dataclass(frozen=True)
class PrefixCache:
    """Fast-dLLM's prefix cache: keeps all positions before the window.

    An approximation: the kept keys and values do not see the tokens that the window commits.
    """

    def __call__(self, canvas: Canvas, memory: Memory) -> Tensor:
        return (_place(canvas) >= canvas.start[:, None]) | memory.opened(canvas)[:, None]


@dataclass(frozen=True)
class DualCache:
    """Fast-dLLM's dual cache: keeps all positions before and after the window.

    An approximation, like the prefix cache. The next block has no history when it opens.
    """

    def __call__(self, canvas: Canvas, memory: Memory) -> Tensor:
        place = _place(canvas)
        inside = (place >= canvas.start[:, None]) & (place < canvas.stop[:, None])
        return inside | memory.opened(canvas)[:, None]


@dataclass(frozen=True)
class DelayedCache:
    """dKV-Cache: keeps a token from one forward after its commit; recomputes masks.

    An approximation. After `refresh` forwards everything is recomputed.
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
    """Keeps finished blocks. Exact for block-causal models: a block never sees later blocks."""

    def __call__(self, canvas: Canvas, memory: Memory) -> Tensor:
        place = _place(canvas)
        return (place >= memory.final[:, None]) & (place < canvas.stop[:, None])


POLICIES: dict[str, Callable[[], Policy]] = {
    "prefix": PrefixCache,
    "dual": DualCache,
    "delayed": DelayedCache,
    "block": BlockCache,
}
