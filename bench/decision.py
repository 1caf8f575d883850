"""The decision step: ours against the paper's listing and two bounds, time and extra memory.

    python -m bench.decision [--short] [--json FILE]

Two steps of random logits, from which every method computes all statistics and the KL, on one
thread. The methods take turns in one process. Times are the best of all rounds, ratios the medians
over the rounds. Extra memory is the rise of the peak in a separate process. Two rows are bounds.
"Exponentials" reads each tensor once with PyTorch and takes one exponential of each element, in
chunks that fit the cache. "Reading" only sums both tensors: it is the bound of the memory.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.common import PeakMemory, in_fresh_process
from bench.measure import Bench, Column, Row, Taken, main, ratio
from bench.methods import methods

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Shape:
    """Number of rows, number of logits per row, and dtype."""

    rows: int
    vocabulary: int
    dtype: str


@dataclass(frozen=True)
class Size:
    """The shapes to measure."""

    rows: tuple[int, ...] = (32, 64, 256)
    vocabularies: tuple[int, ...] = (32768, 126464, 152064)
    dtypes: tuple[str, ...] = tuple(DTYPES)
    rounds: int = 5
    memory: bool = True


SHORT = Size(rows=(64,), vocabularies=(126464,))


def tensors(shape: Shape) -> tuple[Tensor, Tensor]:
    """Two steps of random logits, made row by row so that making them leaves no high water."""
    generator = torch.Generator().manual_seed(0)
    size = shape.rows, shape.vocabulary
    now, then = (torch.empty(size, dtype=DTYPES[shape.dtype]) for _ in range(2))
    for row in range(shape.rows):
        logits = torch.randn(shape.vocabulary, generator=generator) * 2
        now[row] = logits
        then[row] = logits + 0.3 * torch.randn(shape.vocabulary, generator=generator)
    return now, then


def seconds(shape: Shape, rounds: int) -> Taken:
    """The time of each method in each round, after a round that is not counted."""
    pair = tensors(shape)
    taken: Taken = {name: [] for name in methods()}
    for counted in (False, *[True] * rounds):
        for name, method in methods().items():
            begin = time.perf_counter()
            method(*pair)
            if counted:
                taken[name].append(time.perf_counter() - begin)
    return taken


def extra_memory(name: str, shape: Shape) -> int:
    """How much a method raises the peak of this process, in bytes."""
    torch.set_num_threads(1)
    pair = tensors(shape)
    method = methods()[name]
    first = pair if name == "compile" else (t[:2, :64].contiguous() for t in pair)
    method(*first)  # the first call loads or compiles; it is not counted
    with PeakMemory() as memory:
        method(*pair)
    return memory.extra


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """A row for each shape and method."""
    size = size or (SHORT if short else Size())
    grid = itertools.product(size.rows, size.vocabularies, size.dtypes)
    return [row for cell in grid for row in _rows(Shape(*cell), size)]


def _rows(shape: Shape, size: Size) -> list[Row]:
    taken, rows = seconds(shape, size.rounds), []
    for name, times in taken.items():
        row: Row = {
            **vars(shape),
            "method": name,
            "milliseconds": min(times) * 1e3,
            "faster_than_listing": ratio(taken, "listing", name),
            "slower_than_reading": ratio(taken, name, "reading"),
        }
        if size.memory:
            row["extra_megabytes"] = in_fresh_process(extra_memory, name, shape) / 1e6
        rows.append(row)
    return rows


BENCH = Bench(
    "decision",
    "The decision step, all statistics with KL (one thread)",
    (
        Column("rows", "rows", "d"),
        Column("vocabulary", "V", ",d"),
        Column("dtype", "dtype"),
        Column("method", "method"),
        Column("milliseconds", "ms", ".1f"),
        Column("faster_than_listing", "faster than the listing", ".1f", "x"),
        Column("slower_than_reading", "slower than reading", ".1f", "x"),
        Column("extra_megabytes", "extra MB", ".1f"),
    ),
    run,
)

if __name__ == "__main__":
    main(BENCH)
