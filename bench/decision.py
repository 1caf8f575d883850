"""The decision step: ours against the paper's listing, time and extra memory in one run.

    python -m bench.decision [--rows 64] [--vocabulary 126464] [--json]

Ratios are what counts: both are measured in turn, in one process, on one thread.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import torch
from torch import Tensor

from bench.common import PeakMemory, in_fresh_process
from unmask.reduce import Previous, reduce

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def listing(logits: Tensor, previous: Tensor) -> None:
    """Confidence, margin, entropy and KL as the paper's listing computes them."""
    p, q = logits.float().softmax(-1), previous.float().softmax(-1)
    p.topk(2, dim=-1)
    (p * p.log()).sum(-1)
    (q * (q.log() - p.log())).sum(-1)


def ours(logits: Tensor, previous: Tensor) -> None:
    """All statistics with the KL, in chunks of rows."""
    slot = torch.arange(len(logits))
    reduce(logits, Previous(previous, slot), frozenset({"prev_cur"}))


METHODS: dict[str, Callable[[Tensor, Tensor], None]] = {"listing": listing, "unmask": ours}


def tensors(rows: int, vocabulary: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Two steps of random logits, made row by row so that making them leaves no high water."""
    generator = torch.Generator().manual_seed(0)
    now, then = (torch.empty(rows, vocabulary, dtype=dtype) for _ in range(2))
    for row in range(rows):
        logits = torch.randn(vocabulary, generator=generator) * 2
        now[row] = logits
        then[row] = logits + 0.3 * torch.randn(vocabulary, generator=generator)
    return now, then


def seconds(dtype: torch.dtype, rows: int, vocabulary: int, repeats: int) -> dict[str, float]:
    """The best time of each method, the methods taking turns."""
    pair = tensors(rows, vocabulary, dtype)
    best = dict.fromkeys(METHODS, float("inf"))
    for _ in range(repeats):
        for name, method in METHODS.items():
            begin = time.perf_counter()
            method(*pair)
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def extra_memory(name: str, dtype_name: str, rows: int, vocabulary: int) -> int:
    """How much a method raises the peak of this process, in bytes."""
    torch.set_num_threads(1)
    pair = tensors(rows, vocabulary, DTYPES[dtype_name])
    METHODS[name](*(t[:1] for t in pair))  # what the first call allocates once is not counted
    with PeakMemory() as memory:
        METHODS[name](*pair)
    return memory.extra


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--vocabulary", type=int, default=126464)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    shape = arguments.rows, arguments.vocabulary
    found = []
    for dtype_name, dtype in DTYPES.items():
        times = seconds(dtype, *shape, arguments.repeats)
        memory = {
            name: in_fresh_process(extra_memory, name, dtype_name, *shape) for name in METHODS
        }
        found.append({"dtype": dtype_name, "seconds": times, "extra_bytes": memory})
    if arguments.json:
        print(json.dumps({"rows": shape[0], "vocabulary": shape[1], "results": found}, indent=2))
        return
    print(f"{shape[0]} rows x {shape[1]} tokens, all statistics with KL, one thread")
    print("dtype      listing ms  unmask ms  ratio   listing MB  unmask MB")
    for row in found:
        time_, memory = row["seconds"], row["extra_bytes"]
        print(
            f"{row['dtype']:<9}  {time_['listing'] * 1e3:10.1f}  {time_['unmask'] * 1e3:9.1f}  "
            f"{time_['listing'] / time_['unmask']:4.1f}x  {memory['listing'] / 1e6:10.1f}  "
            f"{memory['unmask'] / 1e6:9.1f}"
        )


if __name__ == "__main__":
    main()
