"""Where a decode of the embedded model spends its time.

    python -m bench.profile [--short] [--json FILE]

Held-out word problems under lam 5, one thread, by torch's profiler: the products of the model
(linear maps with the head, and attention), what else its forward does, and the decision. Profiling
itself costs time in every small operation, so that the shares of the products are rather low.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch.profiler import ProfilerActivity, profile, record_function

from bench.measure import Bench, Column, Row, main
from unmask import decode_many, load
from unmask.models.base import Canvas, Denoiser, Hidden
from unmask.tasks import TASKS

RULE = "confidence | swd(5) | eb(0.1)"
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::_scaled_dot_product")
PARTS = ("trunk", "head")


@dataclass(frozen=True)
class Size:
    """How many problems, in batches of which sizes."""

    problems: int = 32
    batches: tuple[int, ...] = (1, 8, 32)


SHORT = Size(problems=16, batches=(1, 8))


class Marked:
    """The model unchanged, its parts marked for the profiler."""

    def __init__(self, model: Denoiser) -> None:
        self.model, self.spec, self.device = model, model.spec, model.device

    def trunk(self, canvas: Canvas) -> Hidden:
        with record_function("trunk"):
            return self.model.trunk(canvas)

    def head(self, hidden: Hidden, rows: Any, positions: Any) -> Any:
        with record_function("head"):
            return self.model.head(hidden, rows, positions)


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """A row for each batch size."""
    size = size or (SHORT if short else Size())
    model, tokenizer = load("embedded")
    problems = TASKS["words"].sample("test", size.problems)
    prompts = [tokenizer.encode(problem.prompt) for problem in problems]
    return [_row(Marked(model), prompts, batch) for batch in size.batches]


def _row(model: Denoiser, prompts: list[list[int]], batch: int) -> Row:
    decode_many(model, prompts[:batch], RULE, length=48, batch_size=batch)
    with profile(activities=[ProfilerActivity.CPU]) as profiler, record_function("whole"):
        results = decode_many(model, prompts, RULE, length=48, batch_size=batch)
    spent = _spent(profiler.events())
    whole, forwards = spent["whole"], sum(result.nfe for result in results)
    model_time = sum(spent[part] for part in PARTS)
    return {
        "batch": batch,
        "products": spent["products"] / whole,
        "attention": spent["attention"] / whole,
        "rest": (model_time - spent["products"] - spent["attention"]) / whole,
        "decision": 1 - model_time / whole,
        "ms": whole / 1e3 / forwards,
    }


def _spent(events: Iterable[Any]) -> dict[str, float]:
    """Microseconds of the marked parts, and of the products within them."""
    spent: dict[str, float] = defaultdict(float)
    for event in events:
        if event.name in ("whole", *PARTS):
            spent[event.name] += event.cpu_time_total
        elif event.name.startswith(PRODUCTS) and event.cpu_parent is not None:
            kind = "attention" if "scaled" in event.name else "products"
            inside = event.cpu_parent.name.startswith(PRODUCTS)
            spent[kind] += 0 if inside else event.cpu_time_total
    return spent


BENCH = Bench(
    "profile",
    f"Where the time of a decode goes, {RULE}, embedded model (one thread)",
    (
        Column("batch", "batch", "d"),
        Column("products", "linear maps", ".0%"),
        Column("attention", "attention", ".0%"),
        Column("rest", "rest of the model", ".0%"),
        Column("decision", "decision", ".0%"),
        Column("ms", "ms per row and forward", ".2f"),
    ),
    run,
)

if __name__ == "__main__":
    main(BENCH)
