"""The input and the output of every kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unmask.rules.view import Divergence

CHUNK_ELEMENTS = 1 << 17  # float32 elements of a chunk: 0.5 MB stays in a cache (GPU: 128 MB)

NO_HISTORY, UNIFORM = -1, -2  # slots that name no row


@dataclass(frozen=True)
class Stats:
    """The statistics of N rows of logits: [N] each, float64 (token: int64)."""

    token: Tensor
    confidence: Tensor
    margin: Tensor
    entropy: Tensor
    kl_prev_cur: Tensor | None = None  # None unless the direction is asked for
    kl_cur_prev: Tensor | None = None
    kl_error: Tensor | None = None  # of a sparse history: how much higher a divergence may be
    js: Tensor | None = None  # None unless asked for
    tv: Tensor | None = None

    def on_host(self) -> Stats:
        """The same in the host's memory."""
        return Stats(*on_host(list(vars(self).values())))


def on_host(columns: Sequence[Tensor | None]) -> list[Any]:
    """Columns of N numbers in the host's memory; all are copied at once, which waits once.

    Whole numbers travel as float64, which holds every token id exactly. None stays None.
    """
    away = [column for column in columns if column is not None and column.device.type != "cpu"]
    if not away:
        return list(columns)
    arrived = iter(torch.stack([column.double() for column in away]).cpu().unbind())
    return [
        column if column is None or column.device.type == "cpu" else next(arrived).to(column.dtype)
        for column in columns
    ]


@dataclass(frozen=True)
class ReduceInput:
    """N rows to reduce, and the rows that they are compared with.

    Row n was row `slot[n]` of `past` one forward ago; NO_HISTORY gives D = 0, and UNIFORM stands
    for the uniform distribution over the tokens that are not suppressed.
    """

    now: Tensor  # [N, V]
    past: Tensor | None = None  # [M, V], of the same dtype
    slot: Tensor | None = None  # [N]; None: no row is compared
    tokens: Tensor | None = None  # [N], to score instead of the likeliest ones
    kl: frozenset[Divergence] = frozenset()  # those asked for; a kernel may give both KL
    uniform: bool = False  # whether a slot may be UNIFORM


ReduceRows = Callable[[ReduceInput], Stats]


OTHER_BITS = "it does not have the bits of torch's"  # begins why a kernel is not used


class Unavailable(Exception):  # noqa: N818  (reads as the sentence it prints)
    """Why a kernel cannot be used here."""


def chunks(logits: Tensor, elements: int | None = None) -> Iterator[slice]:
    """Slices over the rows, few enough rows each that a float32 copy stays small."""
    count, vocabulary = logits.shape
    elements = elements or CHUNK_ELEMENTS
    size = max(1, (elements << 8 if logits.is_cuda else elements) // vocabulary)
    return (slice(lo, min(lo + size, count)) for lo in range(0, max(count, 1), size))


def readable(values: Tensor) -> Tensor:
    """The same values with the tokens of a row contiguous; rows may have any stride."""
    return values if values.stride(-1) == 1 else values.contiguous()


def working_dtype(logits: Tensor) -> torch.dtype:
    """float32, or float64 where the logits are float64."""
    return torch.float64 if logits.dtype == torch.float64 else torch.float32
