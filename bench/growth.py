"""How the cost of a forward grows with the length of the answer and with the block.

    python -m bench.growth [--short] [--json FILE]

A small random model with LLaDA's vocabulary, lam 5, on one thread. Only the first forwards of a
decode are timed, where nearly all of the window is masked: these are the most expensive steps. The
trunk computes the whole canvas, the head and the decision only the masked positions of the open
block.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice
from statistics import median

from bench.clocked import Clocked
from bench.common import Shape, llada_shaped
from bench.measure import Bench, Column, Row, main
from unmask import Rule, Settings, decode_steps, prompt_request
from unmask.models.pretrained import Pretrained

RULE = "confidence | swd(5) | top(1)"


@dataclass(frozen=True)
class Size:
    """Sizes of the model, lengths and blocks to measure."""

    layers: int = 4
    hidden: int = 256
    prompt: int = 32
    lengths: tuple[int, ...] = (64, 128, 256, 512, 1024)
    blocks: tuple[int | None, ...] = (None, 64, 32)
    forwards: int = 4
    rounds: int = 3


SHORT = Size(lengths=(64, 128, 256), rounds=2)


@dataclass(frozen=True)
class Cost:
    """Seconds of one forward."""

    positions: float
    trunk: float
    head: float
    decision: float

    @property
    def total(self) -> float:
        return self.trunk + self.head + self.decision


def cost(model: Pretrained, size: Size, length: int, block: int | None) -> Cost:
    """The mean of the first forwards of a decode; the very first has no history and goes first."""
    clocked = Clocked(model)
    settings = Settings(Rule.parse(RULE), block)
    request = prompt_request(model.spec, list(range(size.prompt)), length, settings)
    steps = decode_steps(clocked, [request])
    next(steps)
    clocked.lap()
    begin = time.process_time()
    made = sum(1 for _ in islice(steps, size.forwards))
    whole = (time.process_time() - begin) / made
    spent = {name: value / made for name, value in clocked.lap().items()}
    trunk, head = spent["trunk"], spent["head"]
    return Cost(spent["positions"], trunk, head, whole - trunk - head)


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """A row for each window and length; the rounds go through all of them."""
    size = size or (SHORT if short else Size())
    model = llada_shaped(Shape(size.layers, size.hidden))
    cells = [(block, length) for block in size.blocks for length in size.lengths]
    costs_of: dict[tuple[int | None, int], list[Cost]] = {cell: [] for cell in cells}
    for _ in range(size.rounds):
        for block, length in cells:
            costs_of[block, length].append(cost(model, size, length, block))
    return [_row(costs_of, size, block, length) for block, length in cells]


def _row(
    costs_of: dict[tuple[int | None, int], list[Cost]], size: Size, block: int | None, length: int
) -> Row:
    costs, least = costs_of[block, length], costs_of[block, size.lengths[0]]
    spent = {
        name: median(getattr(each, name) for each in costs)
        for name in ("trunk", "head", "decision", "total")
    }
    return {
        "window": "full" if block is None else f"block {block}",
        "length": length,
        "canvas": size.prompt + length,
        "positions": costs[0].positions,
        **{f"{name}_ms": 1e3 * seconds for name, seconds in spent.items()},
        "head_and_decision_ms_per_position": 1e3
        * (spent["head"] + spent["decision"])
        / costs[0].positions,
        "growth": median(a.total / b.total for a, b in zip(costs, least, strict=True)),
    }


BENCH = Bench(
    "growth",
    f"Cost of a forward by length and window, {RULE}, 4 layers, d 256, V 126,464 (one thread)",
    (
        Column("window", "window"),
        Column("length", "length", "d"),
        Column("canvas", "canvas", "d"),
        Column("positions", "masked, open", ".1f"),
        Column("trunk_ms", "trunk ms", ".0f"),
        Column("head_ms", "head ms", ".0f"),
        Column("decision_ms", "decision ms", ".0f"),
        Column("total_ms", "total ms", ".0f"),
        Column("head_and_decision_ms_per_position", "head + decision ms / position", ".2f"),
        Column("growth", "over the shortest", ".1f", "x"),
    ),
    run,
)

if __name__ == "__main__":
    main(BENCH)
