"""One pass over the logits: token, confidence, margin, entropy and instability per row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from unmask.kernels import backend, backends, reduce_rows, use
from unmask.kernels.common import NO_HISTORY, UNIFORM, ReduceInput, Stats, chunks, working_dtype
from unmask.rules.view import Divergence

__all__ = ["Past", "Previous", "Stats", "Transform", "backend", "backends", "chunks", "divergence"]
__all__ += ["reduce", "use", "working_dtype"]

# Changes a chunk of float logits before it is scored: (logits [n, V], first row) -> [n, V].
Transform = Callable[[Tensor, int], Tensor]


class Past(Protocol):
    """The last forward of N rows, or what is kept of it."""

    def reduce(
        self, logits: Tensor, kl: frozenset[Divergence], uniform_start: bool, tokens: Tensor | None
    ) -> Stats:
        """Statistics of N rows, compared with their past; the arguments are those of `reduce`."""


@dataclass(frozen=True)
class Previous:
    """The logits of the last forward: row n of now is row `slot[n]` of `logits`, or none at -1."""

    logits: Tensor  # [M, V] in the model's dtype
    slot: Tensor  # [N]

    def reduce(
        self, logits: Tensor, kl: frozenset[Divergence], uniform_start: bool, tokens: Tensor | None
    ) -> Stats:
        """Statistics of N rows and their divergences, in one pass over both forwards."""
        slot = self.slot
        if uniform_start:
            slot = slot.masked_fill(slot == NO_HISTORY, UNIFORM)
        return _asked(ReduceInput(logits, self.logits, slot, tokens, kl, uniform_start))


@torch.no_grad()
def reduce(
    logits: Tensor,  # [N, V], any floating dtype
    previous: Past | None = None,  # one forward ago; rows without a past get D = 0
    kl: frozenset[Divergence] = frozenset(),  # which divergences to compute
    uniform_start: bool = False,  # compare rows without history with the uniform distribution
    transform: Transform | None = None,  # temperature, credit, EOS last
    tokens: Tensor | None = None,  # [N], to score instead of the likeliest ones (drawn tokens)
) -> Stats:
    """Statistics of N rows of logits, float32 inside (float64 for float64).

    Suppressed tokens carry -inf and weigh nothing: 0 log 0 = 0. Ties go to the lowest token id.
    A row with NaN, +inf or no finite logit gets a NaN confidence, for the caller to report. A row
    has the same bits alone and among others. `transform` returns a new tensor, and goes with no
    `kl`: the instability is of the raw logits.
    """
    assert not (kl and transform), "the instability is of the model's own distribution"
    if transform:
        return _transformed(logits, transform, tokens)
    if kl and previous is not None:
        return previous.reduce(logits, kl, uniform_start, tokens)
    slot = None
    if kl and uniform_start:
        slot = torch.full((len(logits),), UNIFORM, device=logits.device)
    return _asked(ReduceInput(logits, None, slot, tokens, kl, uniform_start))


@torch.no_grad()
def divergence(first: Tensor, second: Tensor) -> Tensor:
    """KL(softmax(first) || softmax(second)) of N pairs of rows, >= 0: [N, V] x 2 -> [N]."""
    slot = torch.arange(len(first), device=first.device)
    stats = reduce_rows(ReduceInput(first, second, slot, kl=frozenset({"cur_prev"})))
    assert stats.kl_cur_prev is not None
    return stats.kl_cur_prev


def _asked(rows: ReduceInput) -> Stats:
    """The statistics of these rows, without divergences that a kernel gave unasked."""
    stats = reduce_rows(rows)
    prev_cur = stats.kl_prev_cur if "prev_cur" in rows.kl else None
    cur_prev = stats.kl_cur_prev if "cur_prev" in rows.kl else None
    if prev_cur is stats.kl_prev_cur and cur_prev is stats.kl_cur_prev:
        return stats
    return replace(stats, kl_prev_cur=prev_cur, kl_cur_prev=cur_prev)


def _transformed(logits: Tensor, transform: Transform, tokens: Tensor | None) -> Stats:
    """The statistics of changed logits, one chunk at a time."""
    pieces = []
    for part in chunks(logits):
        z = transform(logits[part].to(working_dtype(logits)), part.start)
        stats = reduce_rows(ReduceInput(z, tokens=None if tokens is None else tokens[part]))
        pieces.append((stats.token, stats.confidence, stats.margin, stats.entropy))
    return Stats(*(torch.cat(column) for column in zip(*pieces, strict=True)))
