"""One pass over the logits: token, confidence, margin, entropy and instability per row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unmask.decoding.sparse import SparsePrevious, compare
from unmask.kernels import backend, backends, reduce_rows, use
from unmask.kernels.common import NO_HISTORY, UNIFORM, Rows, Stats, chunks, working_dtype
from unmask.rules.view import ABSENT, KL

__all__ = ["Previous", "Stats", "Transform", "backend", "backends", "chunks", "divergence"]
__all__ += ["reduce", "use", "working_dtype"]

# Changes a chunk of float logits before it is scored: (logits [n, V], first row) -> [n, V].
Transform = Callable[[Tensor, int], Tensor]


@dataclass(frozen=True)
class Previous:
    """The logits of the last forward: row n of now is row `slot[n]` of `logits`, or none at -1."""

    logits: Tensor  # [M, V] in the model's dtype
    slot: Tensor  # [N]


@torch.no_grad()
def reduce(
    logits: Tensor,
    previous: Previous | SparsePrevious | None = None,
    kl: frozenset[KL] = frozenset(),
    uniform_start: bool = False,
    transform: Transform | None = None,
    tokens: Tensor | None = None,
) -> Stats:
    """Statistics of N rows of logits, float32 inside (float64 for float64).

    Suppressed tokens carry -inf and weigh nothing: 0 log 0 = 0. Ties go to the lowest token id.
    A row with NaN, +inf or no finite logit gets a NaN confidence, for the caller to name. A row
    has the same bits alone and among others.

    Args:
        logits: [N, V], any floating dtype.
        previous: the logits one forward ago, or what is kept of them; rows without any get D = 0.
        kl: which directions of the instability to compute.
        uniform_start: rows without history are compared with the uniform distribution.
        transform: changes a chunk before it is scored (temperature, credit, EOS last); it
            returns a new tensor, and goes with no `kl`: the instability is of the raw logits.
        tokens: [N], the tokens to score instead of the likeliest ones (drawn tokens).
    """
    assert not (kl and transform), "the instability is of the model's own distribution"
    if transform:
        return _transformed(logits, transform, tokens)
    if isinstance(previous, SparsePrevious):
        return _sparsely(logits, previous, kl, uniform_start, tokens)
    slot = _slots(logits, previous, uniform_start) if kl else None
    past = previous.logits if previous and slot is not None else None
    found = reduce_rows(Rows(logits, past, slot, tokens, kl, uniform_start))
    return replace(
        found,
        kl_prev_cur=found.kl_prev_cur if "prev_cur" in kl else ABSENT,
        kl_cur_prev=found.kl_cur_prev if "cur_prev" in kl else ABSENT,
        kl_error=ABSENT,
    )


@torch.no_grad()
def divergence(first: Tensor, second: Tensor) -> Tensor:
    """KL(softmax(first) || softmax(second)) of N pairs of rows, >= 0: [N, V] x 2 -> [N]."""
    slot = torch.arange(len(first), device=first.device)
    return reduce_rows(Rows(first, second, slot, kl=frozenset({"cur_prev"}))).kl_cur_prev


def _sparsely(
    logits: Tensor,
    previous: SparsePrevious,
    kl: frozenset[KL],
    uniform_start: bool,
    tokens: Tensor | None,
) -> Stats:
    """The same where only the likeliest tokens of the last forward are known."""
    new = reduce(logits, None, kl if uniform_start else frozenset(), uniform_start, tokens=tokens)
    if not kl:
        return new
    found, known = compare(logits, previous, kl), previous.slot >= 0
    both = {"prev_cur": found.kl_prev_cur, "cur_prev": found.kl_cur_prev}
    starts = {"prev_cur": new.kl_prev_cur, "cur_prev": new.kl_cur_prev}
    laid = {
        f"kl_{name}": torch.where(known, both[name], starts[name]) if uniform_start else both[name]
        for name in kl
    }
    return replace(new, **laid, kl_error=found.error)


def _slots(logits: Tensor, previous: Previous | None, uniform_start: bool) -> Tensor | None:
    """Which row of the past each row is compared with, if any: [N]."""
    if previous is None:
        start = torch.full((len(logits),), UNIFORM, device=logits.device)
        return start if uniform_start else None
    if not uniform_start:
        return previous.slot
    return torch.where(previous.slot == NO_HISTORY, UNIFORM, previous.slot)


def _transformed(logits: Tensor, transform: Transform, tokens: Tensor | None) -> Stats:
    """The same of changed logits, which are made one chunk at a time."""
    pieces = []
    for part in chunks(logits):
        z = transform(logits[part].to(working_dtype(logits)), part.start)
        found = reduce_rows(Rows(z, tokens=None if tokens is None else tokens[part]))
        pieces.append((found.token, found.confidence, found.margin, found.entropy))
    return Stats(*(torch.cat(column) for column in zip(*pieces, strict=True)))
