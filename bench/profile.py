"""Where a decode of the embedded model spends its time.

    python -m bench.profile [--short] [--json FILE]

Held-out word problems under lam 5, on one thread. The time is divided into the products of the
model (linear maps with the head, and attention), the rest of its forward (norms, rotations, gates,
sums), and the decision. Only these parts are timed, not every small operation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import process_time
from typing import Any

from torch.nn import functional as F  # noqa: N812  (the field's name for it)

from bench.measure import Bench, Column, Row, main
from unmask import decode_many, load
from unmask.embedded.tasks import TASKS
from unmask.models.denoiser import Canvas, Denoiser, Hidden

RULE = "confidence | swd(5) | eb(0.1)"
PRODUCTS = {"linear": "linear maps", "scaled_dot_product_attention": "attention"}


@dataclass(frozen=True)
class Size:
    """Number of problems, and batch sizes."""

    problems: int = 32
    batches: tuple[int, ...] = (1, 8, 32)
    rounds: int = 5


SHORT = Size(rounds=3)


class Clocks:
    """Seconds of calls, by name."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function; adds its time to the name."""

        def timed(*given: Any, **named: Any) -> Any:
            begin = process_time()
            result = function(*given, **named)
            self.spent[name] += process_time() - begin
            return result

        return timed

    @contextmanager
    def products(self) -> Iterator[None]:
        """Measures torch's products until the end of the block."""
        plain = {name: getattr(F, name) for name in PRODUCTS}
        for name, function in plain.items():
            setattr(F, name, self.around(PRODUCTS[name], function))
        try:
            yield
        finally:
            for name, function in plain.items():
                setattr(F, name, function)


class Timed:
    """The model unchanged, with clocks around its two parts."""

    def __init__(self, model: Denoiser, clocks: Clocks) -> None:
        self.model, self.spec, self.device = model, model.spec, model.device
        self._trunk = clocks.around("model", model.trunk)
        self._head = clocks.around("model", model.head)

    def trunk(self, canvas: Canvas) -> Hidden:
        hidden: Hidden = self._trunk(canvas)
        return hidden

    def head(self, hidden: Hidden, rows: Any, positions: Any) -> Any:
        return self._head(hidden, rows, positions)


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """A row for each batch size: the best of its rounds."""
    size = size or (SHORT if short else Size())
    model, tokenizer = load("embedded")
    problems = TASKS["words"].sample("test", size.problems)
    prompts = [tokenizer.encode(problem.prompt) for problem in problems]
    decode_many(model, prompts, RULE, length=48)
    rounds = [[_row(model, prompts, batch) for batch in size.batches] for _ in range(size.rounds)]
    return [min(rows, key=lambda row: row["ms"]) for rows in zip(*rounds, strict=True)]


def _row(model: Denoiser, prompts: list[list[int]], batch: int) -> Row:
    clocks = Clocks()
    begin = process_time()
    with clocks.products():
        results = decode_many(Timed(model, clocks), prompts, RULE, length=48, batch_size=batch)
    whole, spent = process_time() - begin, clocks.spent
    linear, attention = (spent[name] for name in PRODUCTS.values())
    forwards = sum(result.nfe for result in results)
    return {
        "batch": batch,
        "linear": linear / whole,
        "attention": attention / whole,
        "products": (linear + attention) / whole,
        "rest": (spent["model"] - linear - attention) / whole,
        "decision": 1 - spent["model"] / whole,
        "decision_ms": 1e3 * (whole - spent["model"]) / forwards,
        "ms": 1e3 * whole / forwards,
    }


BENCH = Bench(
    "profile",
    f"Where the time of a decode goes, {RULE}, embedded model (one thread)",
    (
        Column("batch", "batch", "d"),
        Column("linear", "linear maps", ".0%"),
        Column("attention", "attention", ".0%"),
        Column("products", "both", ".0%"),
        Column("rest", "rest of the model", ".0%"),
        Column("decision", "decision", ".0%"),
        Column("decision_ms", "decision ms", ".2f"),
        Column("ms", "ms per row and forward", ".2f"),
    ),
    run,
)

if __name__ == "__main__":
    main(BENCH)
