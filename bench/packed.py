"""Products of a layer with packed weights, and with weights of 8 and 4 bits.

    python -m bench.packed [--short] [--json FILE]

Random weights of LLaDA's proportions, one of each shape for every layer, so that they do not stay
in the processor's cache; one thread, by turns. "Packed" is a weight that oneDNN has laid out once.
In bfloat16 its products must have the bits of torch's. int8 and int4 take rows in bfloat16; their
column is their time relative to packed bfloat16. In float32 the last column is our kernel's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  (the field's name for it)

from bench.measure import Bench, Column, Row, by_turns, main, ratio
from unmask.models.packed import PackedLinear, trouble
from unmask.models.products import linear
from unmask.models.quantized import BITS, QuantizedLinear


@dataclass(frozen=True)
class Size:
    """The shapes [inputs, outputs] of a layer's weights, and the numbers of positions."""

    shapes: tuple[tuple[int, int], ...] = ((1024, 1024), (1024, 3072), (3072, 1024), (4096, 4096))
    positions: tuple[int, ...] = (4, 32, 64, 128, 384)
    layers: int = 4
    rounds: int = 9


SHORT = Size(shapes=((1024, 3072), (3072, 1024)), positions=(32, 128), rounds=3)


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """A row for every dtype that can be packed here, shape and number of positions."""
    size = size or (SHORT if short else Size())
    dtypes = [d for d in (torch.float32, torch.bfloat16) if not trouble(d, torch.device("cpu"))]
    with torch.inference_mode():
        return [
            _row(size, dtype, shape, positions)
            for dtype in dtypes
            for shape in size.shapes
            for positions in size.positions
        ]


def _row(size: Size, dtype: torch.dtype, shape: tuple[int, int], positions: int) -> Row:
    inputs, outputs = shape
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randn(outputs, inputs, generator=generator) for _ in range(size.layers)]
    weights = [(weight / inputs**0.5).to(dtype) for weight in drawn]
    x = torch.randn(positions, inputs, generator=generator).to(dtype)
    packed = [_converted(PackedLinear(inputs, outputs, False, dtype=dtype), w) for w in weights]
    ways: dict[str, Callable[[], list[Tensor]]] = {
        "torch": lambda: [F.linear(x, weight) for weight in weights],
        "packed": partial(_each, packed, x),
    }
    if dtype == torch.float32:
        ways["kernel"] = lambda: [linear(x, weight) for weight in weights]
    else:
        for kind in BITS:
            parts = [_converted(QuantizedLinear(inputs, outputs, False, kind), w) for w in weights]
            ways[kind] = partial(_each, parts, x)
        if not all(map(torch.equal, ways["torch"](), ways["packed"]())):
            raise SystemExit(f"bench.packed: bits differ for {shape}, {positions}")
    taken = by_turns(ways, size.rounds)
    flops = 2 * positions * inputs * outputs * size.layers
    return {
        "dtype": str(dtype).removeprefix("torch."),
        "shape": f"{inputs} x {outputs}",
        "positions": positions,
        "speed": flops / min(taken["packed"]) / 1e9,
        "packed": ratio(taken, "torch", "packed"),
        **{kind: ratio(taken, kind, "packed") if kind in taken else None for kind in BITS},
        "kernel": ratio(taken, "torch", "kernel") if "kernel" in taken else None,
    }


def _converted(part: PackedLinear | QuantizedLinear, weight: Tensor) -> torch.nn.Module:
    part.convert(weight)
    return part


def _each(parts: Sequence[torch.nn.Module], x: Tensor) -> list[Tensor]:
    return [part(x) for part in parts]


BENCH = Bench(
    "packed",
    "Products with packed weights, and with 8 and 4 bits (one thread)",
    (
        Column("dtype", "dtype"),
        Column("shape", "inputs x outputs"),
        Column("positions", "positions"),
        Column("speed", "packed Gflop/s", ".0f"),
        Column("packed", "torch / packed", ".2f", "x"),
        Column("int8", "int8 / packed", ".2f", "x"),
        Column("int4", "int4 / packed", ".2f", "x"),
        Column("kernel", "torch / our kernel", ".2f", "x"),
    ),
    run,
)

if __name__ == "__main__":
    main(BENCH)
