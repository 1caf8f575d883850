"""Whole decodes against the original decoders, from clones of their repositories.

    python -m bench.originals --originals FOLDER [--short] [--json FILE]
    python -m bench.originals --originals FOLDER --layers 12 --width 1024 --vocab 12288
    python -m bench.originals --originals FOLDER --dtype bfloat16

FOLDER holds clones of LLaDA, Fast-dLLM, dllm and KLASS; what is missing is left out. Each original
runs as it is, around the same random model as unmask, with the same prompt and settings.
Another token or another number of forwards is an error. Whole decodes take turns on one thread;
"theirs / unmask" is the ratio of the times, the median over the rounds; beside it are the least and
the greatest. Extra memory is the rise of the peak during one decode.

The originals compute the logits of the whole canvas in every step. LLaDA and dllm take a softmax of
them in the dtype of the logits, Fast-dLLM and KLASS in float64; KLASS also keeps the distributions
of the step before. unmask computes the logits of the masked positions of the open block only, and
reads them once. What that saves depends on the head's share of the model's parameters (without the
embedding). The first model has LLaDA's vocabulary and a small trunk: 70% of it is head. The second
has LLaDA's proportions: 7% is head, as in LLaDA-8B; expect this of a real model, not the first.
There nearly all time goes into products of the trunk. In float32 the original's are torch's, and
unmask's its own kernel's where that serves, with the same bits. In bfloat16 both sides have ours.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor

import unmask
from bench.common import (
    LLADA_MASK,
    LLADA_VOCABULARY,
    PeakMemory,
    Shape,
    as_loaded,
    head_share,
    llada_shaped,
)
from bench.measure import Bench, Column, Row, arguments, by_turns, report
from bench.upstream import Decode, HostedModel, Loaded, Work, load_all
from unmask.models.pretrained import Pretrained

WHOLE = Work()
MOSTLY_HEAD = Shape(8, 512)
LIKE_LLADA = Shape(12, 1024, 12288)


@dataclass(frozen=True)
class Size:
    """The models and the decode."""

    shapes: tuple[Shape, ...] = (MOSTLY_HEAD, LIKE_LLADA)
    work: Work = WHOLE
    rounds: int = 5
    dtype: torch.dtype = torch.float32
    pack: bool | None = None  # of unmask's side, as in `load`


SHORT = Size(work=Work(length=64, steps=8), rounds=3)


class Written(NamedTuple):
    """The canvas of a decode, and its forwards."""

    canvas: Tensor  # [L]
    forwards: int


def theirs(model: Pretrained, original: Decode, work: Work) -> Written:
    """The original decoder around our model."""
    hosted = HostedModel(model)
    return Written(original(hosted, work), hosted.forwards)


def ours(model: Pretrained, rule: str, work: Work) -> Written:
    """unmask with the same rule."""
    result = unmask.decode(model, work.prompt_ids, rule, length=work.length, block=work.block)
    return Written(result.canvas, result.nfe)


def run(originals: list[Loaded], size: Size) -> list[Row]:
    """A row for each model and original."""
    rows = []
    for shape in size.shapes:
        model = llada_shaped(shape)
        packed = as_loaded(model, size.dtype, size.pack)
        model.module.to(size.dtype)
        rows += [_row(model, packed, size, each) for each in originals]
    return rows


def _row(model: Pretrained, packed: Pretrained, size: Size, loaded: Loaded) -> Row:
    work, original = size.work, loaded.original
    rule = original.rule_for(work)
    sides = {"theirs": partial(theirs, model, loaded.decode), "unmask": partial(ours, packed, rule)}
    written, extra = {}, {}
    for name, side in sides.items():
        side(replace(work, prompt=1, length=work.block))  # allocations of the first call
        with PeakMemory() as memory:
            written[name] = side(work)
        extra[name] = memory.extra / 1e6
    check(original.name, written["theirs"], written["unmask"])
    taken = by_turns(
        {name: partial(side, work) for name, side in sides.items()}, size.rounds, warm=False
    )
    times = [before / now for before, now in zip(*taken.values(), strict=True)]
    return {
        "shape": f"{model.arch.layers} x {model.arch.hidden}",
        "dtype": str(model.dtype).removeprefix("torch."),
        "vocabulary": model.spec.vocab_size,
        "head": head_share(model),
        "original": f"{original.name} {loaded.commit}".strip(),
        "rule": rule,
        "canvas": f"{work.prompt} + {work.length}, block {work.block}",
        "nfe": written["unmask"].forwards,
        "their_seconds": median(taken["theirs"]),
        "unmask_seconds": median(taken["unmask"]),
        "times": median(times),
        "spread": f"{min(times):.2f}-{max(times):.2f}",
        "their_extra_mb": extra["theirs"],
        "unmask_extra_mb": extra["unmask"],
    }


def check(name: str, before: Written, now: Written) -> None:
    """Decodes that differ in a token or in their forwards are an error."""
    assert torch.equal(before.canvas, now.canvas), f"the tokens differ from those of {name}"
    assert before.forwards == now.forwards, (
        f"{name} made {before.forwards} forwards, unmask {now.forwards}"
    )


BENCH = Bench(
    "originals",
    "A whole decode against the original decoders, same tokens (one thread)",
    (
        Column("shape", "layers x d"),
        Column("dtype", "dtype"),
        Column("vocabulary", "V", ",d"),
        Column("head", "head's share", ".0%"),
        Column("original", "original"),
        Column("rule", "rule"),
        Column("canvas", "prompt + answer"),
        Column("nfe", "NFE", "d"),
        Column("their_seconds", "theirs s", ".2f"),
        Column("unmask_seconds", "unmask s", ".2f"),
        Column("times", "theirs / unmask", ".2f", "x"),
        Column("spread", "least-greatest"),
        Column("their_extra_mb", "theirs extra MB", ".0f"),
        Column("unmask_extra_mb", "unmask extra MB", ".0f"),
    ),
    run,
    needs=" --originals FOLDER",
)


def main() -> None:
    parser = arguments(BENCH)
    parser.add_argument(
        "--originals", type=Path, required=True, metavar="FOLDER", help="the clones"
    )
    parser.add_argument("--layers", type=int, help="of one model instead of the two")
    parser.add_argument("--width", type=int, help="of one model, a multiple of 64")
    parser.add_argument("--vocab", type=int, help="of one model")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--pack", action="store_true", help="unmask packs float32 weights too")
    options = parser.parse_args()
    size = replace(
        SHORT if options.short else Size(),
        dtype=getattr(torch, options.dtype),
        pack=options.pack or None,
    )
    shape = (options.layers, options.width, options.vocab)
    if any(number is not None for number in shape):
        if wrong := _misshapen(*shape):
            parser.error(wrong)
        size = replace(size, shapes=(Shape(*shape),))
    try:
        originals, left_out = load_all(options.originals)
    except ValueError as error:
        sys.exit(f"bench.originals: {error}")
    for reason in left_out:
        print(f"left out: {reason}", file=sys.stderr)
    report(BENCH, options, partial(run, originals, size))


def _misshapen(layers: int | None, width: int | None, vocab: int | None) -> str:
    """What is wrong with the sizes of a model; empty if nothing is.

    LLaDA's mask id, which the originals use, must not be another token of this model.
    """
    if layers is None or width is None or vocab is None:
        return "--layers, --width and --vocab belong together: give all three or none"
    if layers < 1:
        return f"--layers must be >= 1, got {layers}"
    if width < 64 or width % 64:
        return f"--width must be a multiple of 64, got {width}"
    if not (2048 <= vocab <= LLADA_MASK or vocab == LLADA_VOCABULARY):
        return f"--vocab must be 2048 to {LLADA_MASK}, or LLaDA's {LLADA_VOCABULARY}, got {vocab}"
    return ""


if __name__ == "__main__":
    main()
