"""Products of a layer by our kernel, against torch's in float32 and strips in narrower dtypes.

    python -m bench.products [--short] [--json FILE]

Random weights of LLaDA's proportions, one of each shape for every layer, so that they do not stay
in the processor's cache. The kernel must have the bits of torch's product with the same weight in
float32. Without the kernel, a weight in bfloat16 or int8 is widened 2 MB at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from unittest import mock

import torch
from torch import Tensor

from bench.measure import Bench, Column, Row, by_turns, main, ratio
from unmask.kernels.product import agrees, multiply
from unmask.models import products
from unmask.models.products import in_strips, several_rows


@dataclass(frozen=True)
class Size:
    """The shapes [inputs, outputs] of a layer's weights, and the numbers of positions."""

    shapes: tuple[tuple[int, int], ...] = ((1024, 1024), (1024, 3072), (3072, 1024))
    positions: tuple[int, ...] = (32, 64, 128, 384)
    layers: int = 4
    rounds: int = 9


SHORT = Size(positions=(32, 128), rounds=3)
DTYPES = (torch.float32, torch.bfloat16, torch.int8)


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """A row for every dtype, shape and number of positions."""
    if not agrees():
        raise SystemExit("bench.products: there is no product kernel with torch's bits here")
    size = size or (SHORT if short else Size())
    return [
        _row(size, dtype, shape, positions)
        for dtype in DTYPES
        for shape in size.shapes
        for positions in size.positions
    ]


def _row(size: Size, dtype: torch.dtype, shape: tuple[int, int], positions: int) -> Row:
    inputs, outputs = shape
    generator = torch.Generator().manual_seed(0)
    drawn = (torch.randn(outputs, inputs, generator=generator) for _ in range(size.layers))
    weights = [(30 * weight).clamp(-127, 127).to(dtype) for weight in drawn]
    x = torch.randn(positions, inputs, generator=generator)
    ways = {"without": partial(_without, x, weights), "kernel": partial(_kernel, x, weights)}
    with torch.inference_mode():
        among_many = torch.mm(several_rows(x), weights[0].float().t())[:positions]
        if not torch.equal(among_many, multiply(x, weights[0])):
            raise SystemExit(f"bench.products: bits differ for {dtype}, {shape}, {positions}")
        taken = by_turns(ways, size.rounds, warm=False)
    return {
        "dtype": str(dtype).removeprefix("torch."),
        "shape": f"{inputs} x {outputs}",
        "positions": positions,
        "ms": 1e3 * min(taken["kernel"]) / size.layers,
        "times": ratio(taken, "without", "kernel"),
    }


def _kernel(x: Tensor, weights: list[Tensor]) -> list[Tensor]:
    return [multiply(x, weight) for weight in weights]


def _without(x: Tensor, weights: list[Tensor]) -> list[Tensor]:
    if weights[0].dtype == x.dtype:
        return [torch.mm(x, weight.t()) for weight in weights]
    with mock.patch.object(products, "agrees", return_value=False):  # torch multiplies the strips
        return [
            in_strips(x, len(weight), lambda strip, dtype, weight=weight: weight[strip].to(dtype))
            for weight in weights
        ]


BENCH = Bench(
    "products",
    "Products by our kernel (one thread)",
    (
        Column("dtype", "weight"),
        Column("shape", "inputs x outputs"),
        Column("positions", "positions"),
        Column("ms", "kernel ms", ".2f"),
        Column("times", "without / kernel", ".2f", "x"),
    ),
    run,
)

if __name__ == "__main__":
    main(BENCH)
