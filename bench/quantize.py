"""Weights in 8 and 4 bits: size, speed, and what it does to the answers.

    python -m bench.quantize [--short] [--json FILE]

Size and speed are those of the layers of a random model of LLaDA's proportions, one thread, by
turns. Error, tokens and accuracy are those of the embedded model, which is trained: the error is
the deviation of the logits from float32's, relative to their spread; equal tokens are counted over
the answers; the accuracy is on the words and code tasks, with the paired difference to float32.
Activations are float32 in the rows float32, int8 and int4, and bfloat16 in the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from bench.common import Shape, as_loaded, converted, llada_shaped
from bench.measure import Bench, Column, Row, by_turns, main
from unmask import Session
from unmask.lab.compare import compare
from unmask.lab.stats import paired
from unmask.models.packed import PackedLinear
from unmask.models.pretrained import Pretrained
from unmask.models.quantized import quantize_layers

WAYS: dict[str, tuple[str, str | None]] = {
    "float32": ("float32", None),
    "bfloat16": ("bfloat16", None),
    "int8": ("float32", "int8"),
    "int4": ("float32", "int4"),
    "int8, bfloat16": ("bfloat16", "int8"),
    "int4, bfloat16": ("bfloat16", "int4"),
}
RULE = "entropy | threshold(-0.1)"
BLOCK = 16
LAYERS = Shape(4, 1024, 2048)


@dataclass(frozen=True)
class Size:
    """The random model, its canvas, and the problems."""

    shape: Shape = LAYERS
    places: int = 160
    rounds: int = 3
    problems: int = 200
    tasks: tuple[str, ...] = ("words", "code")


SHORT = Size(rounds=2, problems=40)


def made(plain: Pretrained, way: str) -> Pretrained:
    """The random model in one of the ways."""
    name, kind = WAYS[way]
    dtype = getattr(torch, name)
    if kind is None:
        return as_loaded(plain, dtype)
    return converted(plain, dtype, lambda module: quantize_layers(module, plain.arch, kind))


def layer_bytes(model: Pretrained) -> int:
    """The bytes of the layers' weights."""
    layers = model.module.layers
    packed = [part.packed for part in layers.modules() if isinstance(part, PackedLinear)]
    whole = sum(weight.numel() * weight.element_size() for weight in packed if weight is not None)
    return whole + sum(tensor.nbytes for tensor in (*layers.parameters(), *layers.buffers()))


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """A row for every way."""
    torch.set_num_threads(1)
    size = size or (SHORT if short else Size())
    plain = llada_shaped(size.shape)
    ids = torch.arange(size.places)[None] % size.shape.vocabulary
    models = {way: made(plain, way) for way in WAYS}
    with torch.inference_mode():
        taken = by_turns(
            {way: lambda model=model: model.module(ids) for way, model in models.items()},
            size.rounds,
        )
    seconds = {way: median(values) for way, values in taken.items()}
    answers = {way: _answers(way, size) for way in WAYS}
    logits = {way: _logits(way, answers["float32"]) for way in WAYS}
    return [
        {
            "way": way,
            "bytes": layer_bytes(models[way]) / layer_bytes(models["bfloat16"]),
            "ms": 1e3 * seconds[way],
            "slower": seconds[way] / seconds["bfloat16"],
            "error": float((logits[way] - logits["float32"]).std() / logits["float32"].std()),
            "same": _same(answers[way], answers["float32"]),
            **{task: _accuracy(answers[way], answers["float32"], task) for task in size.tasks},
        }
        for way in WAYS
    ]


Answers = dict[str, list[tuple[list[int], bool]]]  # of every task: tokens, and if it is right


def _session(way: str) -> Session:
    dtype, kind = WAYS[way]
    return Session(device="cpu", dtype=dtype, quantize=kind, rule=RULE)


def _answers(way: str, size: Size) -> Answers:
    """The embedded model's answers to every task."""
    session = _session(way)
    answers: Answers = {}
    for task in size.tasks:
        compared = compare([RULE], task, session, limit=size.problems, block=BLOCK)
        answers[task] = [
            (row.answer["ids"], bool(row.grade and row.grade["acc"]))
            for row in compared.summaries[0].rows
        ]
    return answers


def _logits(way: str, answers: Answers) -> Tensor:
    """Logits of all positions of a few answers."""
    model = _session(way).model()
    assert isinstance(model, Pretrained)
    rows = [tokens for task in answers.values() for tokens, _ in task[:8]]
    with torch.inference_mode():
        return torch.cat([_flat(model, row) for row in rows if row])


def _flat(model: Pretrained, row: list[int]) -> Tensor:
    return model.module.logits(model.module(torch.tensor([row])))[0].float()


def _same(answers: Answers, others: Answers) -> float:
    """The share of tokens that are those of the other answers."""
    pairs = [
        (a, b)
        for task in answers
        for (a, _), (b, _) in zip(answers[task], others[task], strict=True)
    ]
    equal = sum(x == y for a, b in pairs for x, y in zip(a, b, strict=False))
    return equal / sum(max(len(a), len(b)) for a, b in pairs)


def _accuracy(answers: Answers, others: Answers, task: str) -> str:
    """Percent, and the paired difference with its interval."""
    right, before = ([ok for _, ok in each[task]] for each in (answers, others))
    pair = paired(before, right)
    low, high = (100 * end for end in pair.interval)
    share = 100 * sum(right) / len(right)
    return f"{share:.1f}, {100 * pair.difference:+.1f} [{low:+.1f}, {high:+.1f}]"


BENCH = Bench(
    "quantize",
    "Weights in 8 and 4 bits (one thread)",
    (
        Column("way", "weights"),
        Column("bytes", "size to bfloat16", ".2f", "x"),
        Column("ms", "forward ms", ".1f"),
        Column("slower", "time to bfloat16", ".2f", "x"),
        Column("error", "logits error", ".2%"),
        Column("same", "equal tokens", ".1%"),
        Column("words", "words %, difference"),
        Column("code", "code %, difference"),
    ),
    run,
)

if __name__ == "__main__":
    main(BENCH)
