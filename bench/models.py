"""A whole decode: ours against a plain loop, with the same tokens out.

    python -m bench.models [--short] [--json FILE]

The plain loop is our own, so that it runs without clones of other projects (`bench.originals` runs
the originals). It does what they do: in every step it computes the logits of the whole canvas and,
as LLaDA, a softmax of them in their dtype. With SWD it keeps the distributions of two steps, as the
paper's listing does. Random models in float32, one thread, by turns.

The head's share is of the parameters without the embedding. The first model has LLaDA's vocabulary
and a small trunk; the second has the share of LLaDA-8B. unmask saves work in the head and in the
decision, so it gains little where the trunk takes most of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

import torch
from torch import Tensor

import unmask
from bench.common import PeakMemory, Shape, head_share, in_fresh_process, llada_shaped
from bench.measure import Bench, Column, Row, by_turns, main, ratio
from unmask.models.pretrained import Pretrained

TINY = 1e-12  # what the listings add to a probability before its logarithm


@dataclass(frozen=True)
class Size:
    """The models and the decode."""

    shapes: tuple[Shape, ...] = (Shape(8, 512), Shape(8, 512, 4096))
    prompt: int = 64
    length: int = 128
    block: int = 32
    steps: int = 32
    rounds: int = 3
    memory: bool = True


SHORT = Size(steps=8, rounds=1)
LAMS = (0.0, 5.0)


def prompt_of(size: Size) -> list[int]:
    return list(range(1000, 1000 + size.prompt))


def rule_of(size: Size, lam: float) -> str:
    """The plain loop has nothing to compare the first step with, so ours skips it too."""
    swd = f"swd({lam:g}, start=skip) | " if lam else ""
    return f"confidence | {swd}static({size.steps})"


def ours(model: Pretrained, size: Size, lam: float) -> Tensor:
    """unmask: the head runs on the masked positions of the open block."""
    rule, prompt = rule_of(size, lam), prompt_of(size)
    return unmask.decode(model, prompt, rule, length=size.length, block=size.block).canvas


@torch.no_grad()
def plain(model: Pretrained, size: Size, lam: float) -> Tensor:
    """LLaDA's timetable over logits and a softmax of the whole canvas, as the originals have it."""
    mask_id = model.spec.mask_id
    x = torch.tensor([prompt_of(size) + [mask_id] * size.length])
    blocks = size.length // size.block
    per_step = size.block // (size.steps // blocks)
    before: Tensor | None = None
    for number in range(blocks):
        end = size.prompt + (number + 1) * size.block
        for _ in range(size.steps // blocks):
            logits = model.module.logits(model.module(x))  # [1, L, V]
            logits[..., mask_id] = -torch.inf
            token = logits.argmax(-1)
            p = logits.softmax(-1)
            score = p.gather(-1, token[..., None])[..., 0]
            if lam:
                if before is not None:
                    kl = (before * ((before + TINY).log() - (p + TINY).log())).sum(-1)
                    score = score * torch.exp(-lam * kl)
                before = p
            score[x != mask_id] = -torch.inf
            score[:, end:] = -torch.inf
            chosen = score[0].topk(per_step).indices
            x[0, chosen] = token[0, chosen]
    return x[0]


METHODS: dict[str, Callable[[Pretrained, Size, float], Tensor]] = {"plain": plain, "unmask": ours}


def extra_memory(name: str, shape: Shape, size: Size, lam: float) -> int:
    """How far one method raises the peak of a process of its own, in bytes."""
    torch.set_num_threads(1)
    model = llada_shaped(shape)
    METHODS[name](model, _little(size), lam)  # allocations of the first call are not counted
    blocks = size.length // size.block
    with PeakMemory() as memory:
        METHODS[name](model, replace(size, steps=blocks), lam)  # a step for every block will do
    return memory.extra


def _little(size: Size) -> Size:
    return replace(size, prompt=1, length=size.block, steps=2)


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """For each model a row without SWD and one with it; tokens that differ are an error."""
    size = size or (SHORT if short else Size())
    rows = []
    for shape in size.shapes:
        model = llada_shaped(shape)
        rows += [_row(model, shape, size, lam) for lam in LAMS]
    return rows


def _row(model: Pretrained, shape: Shape, size: Size, lam: float) -> Row:
    written: dict[str, Tensor] = {}

    def keeping(name: str) -> Callable[[], None]:
        def method() -> None:
            written[name] = METHODS[name](model, size, lam)

        return method

    for method in METHODS.values():
        method(model, _little(size), lam)  # warm
    taken = by_turns({name: keeping(name) for name in METHODS}, size.rounds, warm=False)
    assert torch.equal(written["plain"], written["unmask"]), "the tokens differ"
    row: Row = {
        "shape": f"{shape.layers} x {shape.hidden}",
        "vocabulary": shape.vocabulary,
        "head": head_share(model),
        "rule": rule_of(size, lam),
        "canvas": f"{size.prompt} + {size.length}, block {size.block}",
        "nfe": size.steps,
        "plain_seconds": median(taken["plain"]),
        "unmask_seconds": median(taken["unmask"]),
        "faster": ratio(taken, "plain", "unmask"),
        "same_tokens": True,
    }
    if size.memory:
        used = {name: in_fresh_process(extra_memory, name, shape, size, lam) for name in METHODS}
        row |= {f"{name}_extra_mb": extra / 1e6 for name, extra in used.items()}
        row["leaner"] = used["plain"] / max(1, used["unmask"])
    return row


BENCH = Bench(
    "models",
    "A whole decode against a plain loop of our own, same tokens (one thread)",
    (
        Column("shape", "layers x d"),
        Column("vocabulary", "V", ",d"),
        Column("head", "head's share", ".0%"),
        Column("rule", "rule"),
        Column("canvas", "prompt + answer"),
        Column("nfe", "NFE", "d"),
        Column("plain_seconds", "plain s", ".2f"),
        Column("unmask_seconds", "unmask s", ".2f"),
        Column("faster", "faster", ".2f", "x"),
        Column("plain_extra_mb", "plain extra MB", ".0f"),
        Column("unmask_extra_mb", "unmask extra MB", ".0f"),
        Column("leaner", "leaner", ".1f", "x"),
    ),
    run,
)

if __name__ == "__main__":
    main(BENCH)
