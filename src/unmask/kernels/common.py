"""What every kernel is given and gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.rules.view import ABSENT, KL

CHUNK_ELEMENTS = 1 << 17  # float32 elements of a chunk: 0.5 MB stays in a cache (GPU: 128 MB)

NO_HISTORY, UNIFORM = -1, -2  # slots that name no row


@dataclass(frozen=True)
class Stats:
    """What is left of N rows of logits: [N] each, float64 (token: int64)."""

    token: Tensor
    confidence: Tensor
    margin: Tensor
    entropy: Tensor
    kl_prev_cur: Tensor = ABSENT
    kl_cur_prev: Tensor = ABSENT
    kl_error: Tensor = ABSENT  # of a sparse history: how much higher the KL may be

    def on_host(self) -> Stats:
        """The same in the host's memory."""
        return Stats(*on_host(list(vars(self).values())))


def on_host(columns: Sequence[Tensor]) -> list[Tensor]:
    """Columns of N numbers in the host's memory, in one go: the one wait of a step for its device.

    Whole numbers travel as float64, which holds every token id exactly.
    """
    away = [column for column in columns if column.device.type != "cpu"]
    if not away:
        return list(columns)
    arrived = iter(torch.stack([column.double() for column in away]).cpu().unbind())
    return [
        column if column.device.type == "cpu" else next(arrived).to(column.dtype)
        for column in columns
    ]


@dataclass(frozen=True)
class Rows:
    """N rows to reduce, and what they are compared with.

    Row n was row `slot[n]` of `past` one forward ago; NO_HISTORY gives D = 0, and UNIFORM stands
    for the uniform distribution over the tokens that are not suppressed.
    """

    now: Tensor  # [N, V]
    past: Tensor | None = None  # [M, V], of the same dtype
    slot: Tensor | None = None  # [N], none: no row is compared
    tokens: Tensor | None = None  # [N], to score instead of the likeliest ones
    kl: frozenset[KL] = frozenset()  # the directions that are asked for; more may be given
    uniform: bool = False  # whether a slot may be UNIFORM


Kernel = Callable[[Rows], Stats]


class Unavailable(Exception):  # noqa: N818  (reads as the sentence it prints)
    """Why a kernel cannot serve here."""


def chunks(logits: Tensor, elements: int | None = None) -> Iterator[slice]:
    """Slices over the rows, few enough rows each that a float32 copy stays small."""
    count, vocabulary = logits.shape
    elements = elements or CHUNK_ELEMENTS
    size = max(1, (elements << 8 if logits.is_cuda else elements) // vocabulary)
    return (slice(lo, min(lo + size, count)) for lo in range(0, max(count, 1), size))


def working_dtype(logits: Tensor) -> torch.dtype:
    """float32, or float64 where the model itself speaks float64."""
    return torch.float64 if logits.dtype == torch.float64 else torch.float32
