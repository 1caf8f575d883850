"""What SWD costs: the same decode with lam 5 and with lam 0, as a share of the run.

    python -m bench.swd [--short] [--json FILE]

Random models. A fixed timetable gives both runs the same forwards and the same number of masked
positions in each; their steps are made by turns, on one thread. The difference holds everything
that lam > 0 brings: the KL, the memory of the last logits, and where a block opens the head over
its positions. "KL" is the part of the KL alone, as `unmask eval` measures it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from bench.common import llada_shaped
from bench.measure import Bench, Column, Row, Taken, main, ratio, side_by_side
from unmask import Rule, Settings, Step, decode_steps, prompt_request
from unmask.divided import Divided
from unmask.models.pretrained import Pretrained

LLADA = 126464


@dataclass(frozen=True)
class Shape:
    """Of a model."""

    layers: int
    hidden: int
    vocabulary: int = LLADA


@dataclass(frozen=True)
class Size:
    """What is decoded, by which models."""

    shapes: tuple[Shape, ...] = (Shape(8, 512, 4096), Shape(8, 512), Shape(16, 1024))
    prompt: int = 64
    length: int = 128
    blocks: tuple[int | None, ...] = (None, 32)
    forwards: int = 32
    rounds: int = 3


SHORT = Size(shapes=(Shape(8, 512, 4096), Shape(8, 512)), length=64, forwards=16, rounds=2)


def steps(
    model: Pretrained, size: Size, block: int | None, lam: float, divided: Divided | None = None
) -> Iterator[Step]:
    """One decode, step by step."""
    rule = Rule.parse(f"confidence | swd({lam:g}) | static({size.forwards})")
    prompt = [token % 50 for token in range(size.prompt)]
    request = prompt_request(model.spec, prompt, size.length, Settings(rule, block))
    return decode_steps(model, [request], **({"reducer": divided} if divided else {}))


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """A row for each model and window."""
    size = size or (SHORT if short else Size())
    rows = []
    for shape in size.shapes:
        model = llada_shaped(shape.layers, shape.hidden, vocabulary=shape.vocabulary)
        rows += [_row(model, shape, size, block) for block in size.blocks]
    return rows


def _row(model: Pretrained, shape: Shape, size: Size, block: int | None) -> Row:
    taken: Taken = {"plain": [], "swd": []}
    _equal_work(model, size, block)
    for _ in range(size.rounds):
        runs = {
            "plain": steps(model, size, block, 0.0),
            "swd": steps(model, size, block, 5.0),
        }
        for name, seconds in side_by_side(runs).items():
            taken[name].append(seconds)
    return {
        "parameters": model.parameters,
        "shape": f"{shape.layers} x {shape.hidden}",
        "vocabulary": shape.vocabulary,
        "canvas": f"{size.prompt} + {size.length}",
        "window": "full" if block is None else f"block {block}",
        "nfe": size.forwards,
        "plain_seconds": median(taken["plain"]),
        "swd_seconds": median(taken["swd"]),
        "added": ratio(taken, "swd", "plain") - 1,
        "kl": _kl_share(model, size, block),
    }


def _equal_work(model: Pretrained, size: Size, block: int | None) -> None:
    """The first, uncounted runs: both compute as many positions in each of as many forwards."""
    counts = [
        [int(step.view.masked.sum()) for step in steps(model, size, block, lam)]
        for lam in (0.0, 5.0)
    ]
    assert counts[0] == counts[1], "the runs differ in what they compute"
    assert len(counts[0]) == size.forwards


def _kl_share(model: Pretrained, size: Size, block: int | None) -> float:
    divided, begin = Divided(), perf_counter()
    for _ in steps(model, size, block, 5.0, divided):
        pass
    whole, spent = perf_counter() - begin, divided.spent()
    return spent.kl / (whole - spent.probes)


BENCH = Bench(
    "swd",
    "SWD over lam = 0, equal forwards and positions (one thread)",
    (
        Column("parameters", "parameters", ",d"),
        Column("shape", "layers x d"),
        Column("vocabulary", "V", ",d"),
        Column("canvas", "prompt + answer"),
        Column("window", "window"),
        Column("nfe", "NFE", "d"),
        Column("plain_seconds", "lam 0 s", ".2f"),
        Column("swd_seconds", "lam 5 s", ".2f"),
        Column("added", "SWD adds", ".2%"),
        Column("kl", "of it KL", ".2%"),
    ),
    run,
)

if __name__ == "__main__":
    main(BENCH)
