"""The decision step: ours against the paper's listing and two bounds, time and extra memory.

    python -m bench.decision [--rows 64] [--vocabulary 126464] [--dtypes float32 bfloat16] [--json]
    python -m bench.decision --rows 32 64 256 --vocabulary 32768 126464 152064    the whole grid

Ratios are what counts: the methods take turns, in one process, on one thread.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from bench.common import PeakMemory, in_fresh_process
from bench.methods import methods

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Shape:
    """How many rows of how many logits, and in which dtype."""

    rows: int
    vocabulary: int
    dtype: str


@dataclass(frozen=True)
class Found:
    """One method at one shape; the ratios are medians over the rounds, of times side by side."""

    method: str
    milliseconds: float  # the best
    faster_than_listing: float
    slower_than_reading: float
    extra_megabytes: float | None


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


def seconds(shape: Shape, rounds: int) -> dict[str, list[float]]:
    """The time of each method in each round, after one that is not counted."""
    pair, taken = tensors(shape), {name: [] for name in methods()}
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
    method(*first)  # what a first call loads, or compiles, is not counted
    with PeakMemory() as memory:
        method(*pair)
    return memory.extra


def measure(shape: Shape, rounds: int, memory: bool) -> list[Found]:
    """Every method at one shape."""
    taken = seconds(shape, rounds)

    def ratio(above: str, below: str) -> float:
        pairs = zip(taken[above], taken[below], strict=True)
        return statistics.median(a / b for a, b in pairs)

    return [
        Found(
            name,
            min(times) * 1e3,
            ratio("listing", name),
            ratio(name, "reading"),
            in_fresh_process(extra_memory, name, shape) / 1e6 if memory else None,
        )
        for name, times in taken.items()
    ]


def table(shape: Shape, found: list[Found]) -> str:
    """The methods of one shape as lines of text."""
    lines = [f"{shape.rows} rows x {shape.vocabulary} tokens, {shape.dtype}"]
    lines.append("method             ms   x listing   x reading   extra MB")
    for one in found:
        memory = "" if one.extra_megabytes is None else f"{one.extra_megabytes:8.1f}"
        lines.append(
            f"{one.method:<13}{one.milliseconds:8.1f}  {one.faster_than_listing:8.1f}x  "
            f"{one.slower_than_reading:9.1f}x   {memory}"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[64])
    parser.add_argument("--vocabulary", type=int, nargs="+", default=[126464])
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-memory", action="store_true", help="measure the time only")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    grid = itertools.product(arguments.rows, arguments.vocabulary, arguments.dtypes)
    results = []
    for shape in itertools.starmap(Shape, grid):
        found = measure(shape, arguments.rounds, not arguments.no_memory)
        results.append({**asdict(shape), "methods": [asdict(one) for one in found]})
        print(table(shape, found), file=sys.stderr if arguments.json else sys.stdout)
    if arguments.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
