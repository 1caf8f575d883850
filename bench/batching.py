"""Tokens per second against the batch size, where rows need unequal numbers of forwards.

    python -m bench.batching [--short] [--json FILE]

The embedded model on held-out problems under an adaptive rule, in four ways. "unmask" is what
`decode_many` and `eval` do: the longest requests go first, a row that is done leaves and the next
request takes its place. "In order" is the same in the order of the requests. "Waiting" takes the
next requests only when the slowest row of the batch is done, and "waiting, whole" keeps the rows
that are done in every forward until then, as public batch loops do. All give the same tokens. One
thread, so a batch saves only the fixed cost of a forward. The methods take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from statistics import mean, median

import torch
from torch.nn.functional import pad

from bench.measure import Bench, Column, Row, by_turns, main, ratio
from unmask import Request, Result, Rule, Settings, decode_steps, load, prompt_request
from unmask.decoding.request import longest_first
from unmask.embedded.tasks import TASKS
from unmask.models.denoiser import Canvas, Denoiser, Hidden
from unmask.models.tokenizer import Tokenizer

RULE = "confidence | swd(5) | eb(0.1)"
LENGTHS = (8, 16, 32, 64)


@dataclass(frozen=True)
class Size:
    """How many requests, in batches of which sizes."""

    requests: int = 96
    batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    mixes: tuple[str, ...] = ("equal", "mixed")
    rounds: int = 3


SHORT = Size(requests=64, batches=(1, 8, 32), rounds=1)


class Staying:
    """A model whose batch keeps the rows that are done: they cost what they always did."""

    def __init__(self, model: Denoiser) -> None:
        self.model, self.spec, self.device = model, model.spec, model.device
        self.new_batch()

    def new_batch(self) -> None:
        """All rows are done."""
        self._last: Canvas | None = None
        self._done: list[Canvas] = []  # with one row each

    def trunk(self, canvas: Canvas) -> Hidden:
        """The rows that are done go behind the others, where no decision looks."""
        if self._last is not None:
            left = [row for row, key in enumerate(self._last.keys) if key not in canvas.keys]
            self._done += [_only(self._last, row) for row in left]
        self._last = canvas
        return self.model.trunk(_joined([canvas, *self._done]) if self._done else canvas)

    def head(self, hidden: Hidden, rows: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return self.model.head(hidden, rows, positions)


def _only(canvas: Canvas, row: int) -> Canvas:
    parts = {
        name: value if isinstance(value, bool) else value[row : row + 1]
        for name, value in vars(canvas).items()
    }
    return Canvas(**parts)


def _joined(canvases: list[Canvas]) -> Canvas:
    width = max(canvas.tokens.shape[-1] for canvas in canvases)
    padded = [
        replace(
            canvas,
            tokens=pad(canvas.tokens, (0, width - canvas.tokens.shape[-1])),
            masked=pad(canvas.masked, (0, width - canvas.masked.shape[-1])),
            given=pad(canvas.given, (0, width - canvas.given.shape[-1]), value=True),
        )
        for canvas in canvases
    ]
    names = ("tokens", "lengths", "masked", "given", "start", "stop")
    joined = {name: torch.cat([getattr(canvas, name) for canvas in padded]) for name in names}
    return Canvas(**joined, keys=tuple(key for canvas in canvases for key in canvas.keys))


def requests(model: Denoiser, tokenizer: Tokenizer, size: Size, mix: str) -> list[Request]:
    """Word problems: answers of one length, or of several beside prompts of several tasks."""
    settings = Settings(Rule.parse(RULE))
    if mix == "equal":
        problems = TASKS["words"].sample("test", size.requests)
        lengths = [32] * size.requests
    else:
        each = -(-size.requests // 2)
        halves = [TASKS[name].sample("test", each) for name in ("words", "code")]
        problems = [p for pair in zip(*halves, strict=True) for p in pair][: size.requests]
        lengths = [LENGTHS[number % len(LENGTHS)] for number in range(size.requests)]
    return [
        prompt_request(model.spec, tokenizer.encode(problem.prompt), length, settings)
        for problem, length in zip(problems, lengths, strict=True)
    ]


Way = Callable[[Denoiser, list[Request], int], Iterator[Result]]


def continuous(model: Denoiser, todo: list[Request], batch: int) -> Iterator[Result]:
    """A place that is free is taken at the next step."""
    for step in decode_steps(model, todo, batch):
        yield from step.finished


def waiting(model: Denoiser, todo: list[Request], batch: int) -> Iterator[Result]:
    """The next requests enter when all rows are done; rows that are done leave the forward."""
    for first in range(0, len(todo), batch):
        for result in continuous(model, todo[first : first + batch], batch):
            yield replace(result, key=first + result.key)


def whole(model: Denoiser, todo: list[Request], batch: int) -> Iterator[Result]:
    """The same, and rows that are done stay in the forward."""
    staying = Staying(model)
    for first in range(0, len(todo), batch):
        yield from (
            replace(result, key=first + result.key)
            for result in continuous(staying, todo[first : first + batch], batch)
        )
        staying.new_batch()


def longest(model: Denoiser, todo: list[Request], batch: int) -> Iterator[Result]:
    """Continuous, the longest first."""
    order = longest_first([len(request.canvas) for request in todo])
    for result in continuous(model, [todo[number] for number in order], batch):
        yield replace(result, key=order[result.key])


WAYS: dict[str, Way] = {
    "unmask": longest,
    "continuous": continuous,
    "waiting": waiting,
    "whole": whole,
}


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """A row for each mix and batch size; other tokens or forwards of any way are an error."""
    size = size or (SHORT if short else Size())
    model, tokenizer = load("embedded")
    rows = []
    for mix in size.mixes:
        todo = requests(model, tokenizer, size, mix)
        alone = {result.key: result for result in continuous(model, todo, 1)}
        rows += [_row(model, todo, mix, batch, alone, size.rounds) for batch in size.batches]
    return rows


def _row(
    model: Denoiser,
    todo: list[Request],
    mix: str,
    batch: int,
    alone: dict[int, Result],
    rounds: int,
) -> Row:
    def drained(way: Way) -> Callable[[], None]:
        def method() -> None:
            _same({result.key: result for result in way(model, todo, batch)}, alone)

        return method

    ways = WAYS if batch > 1 else {"unmask": longest}  # of one row all are the same
    taken = by_turns({name: drained(way) for name, way in ways.items()}, rounds, warm=False)
    tokens = sum(len(result.answer) for result in alone.values())
    nfe = [alone[key].nfe for key in range(len(todo))]
    row = {
        "lengths": mix,
        "batch": batch,
        "requests": len(todo),
        "nfe": mean(nfe),
        "slowest": mean(max(nfe[i : i + batch]) for i in range(0, len(nfe), batch)),
        **{f"{name}_rate": tokens / median(seconds) for name, seconds in taken.items()},
        "same_tokens": True,
    }
    return row | {f"over_{name}": ratio(taken, name, "unmask") for name in taken if len(taken) > 1}


def _same(results: dict[int, Result], alone: dict[int, Result]) -> None:
    assert results.keys() == alone.keys()
    for key, result in results.items():
        assert torch.equal(result.canvas, alone[key].canvas), f"request {key}: other tokens"
        assert result.nfe == alone[key].nfe, f"request {key}: other forwards"


BENCH = Bench(
    "batching",
    f"Tokens per second by batch size, {RULE}, embedded model (one thread)",
    (
        Column("lengths", "lengths"),
        Column("batch", "batch", "d"),
        Column("nfe", "NFE, mean", ".1f"),
        Column("slowest", "slowest of a batch", ".1f"),
        Column("unmask_rate", "unmask tok/s", ".0f"),
        Column("continuous_rate", "in order tok/s", ".0f"),
        Column("waiting_rate", "waiting tok/s", ".0f"),
        Column("whole_rate", "waiting, whole tok/s", ".0f"),
        Column("over_continuous", "unmask over in order", ".2f", "x"),
        Column("over_waiting", "over waiting", ".2f", "x"),
        Column("over_whole", "over waiting, whole", ".2f", "x"),
    ),
    run,
)

if __name__ == "__main__":
    main(BENCH)
