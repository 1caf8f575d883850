"""A whole decode: ours against a loop written as the public ones are, with the same tokens out.

    python -m bench.models [--short] [--json FILE]

A LLaDA-shaped random model with the real vocabulary. The naive loop is Fast-dLLM's and LLaDA's:
logits and a float64 softmax of every position in every step; with SWD it keeps the distributions
of two steps over the whole canvas, as the paper's listing does. One thread, by turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

import torch
from torch import Tensor

import unmask
from bench.common import PeakMemory, in_fresh_process, llada_shaped
from bench.measure import Bench, Column, Row, by_turns, main, ratio
from unmask.models.pretrained import Pretrained

TINY = 1e-12  # what the listings add to a probability before its logarithm


@dataclass(frozen=True)
class Size:
    """Sizes of the model and of the decode."""

    layers: int = 8
    hidden: int = 512
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


def ours(model: Pretrained, size: Size, lam: float) -> Tensor:
    """unmask: the head runs on the masked positions of the open block."""
    rule = f"confidence | swd({lam:g}) | static({size.steps})"
    prompt = prompt_of(size)
    return unmask.decode(model, prompt, rule, length=size.length, block=size.block).canvas


@torch.no_grad()
def naive(model: Pretrained, size: Size, lam: float) -> Tensor:
    """LLaDA's timetable over logits and a softmax of the whole canvas, as public code has it."""
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
            p = logits.double().softmax(-1)
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


METHODS: dict[str, Callable[[Pretrained, Size, float], Tensor]] = {"naive": naive, "unmask": ours}


def extra_memory(name: str, size: Size, lam: float) -> int:
    """How far one method raises the peak of a process of its own, in bytes."""
    torch.set_num_threads(1)
    model = llada_shaped(size.layers, size.hidden)
    METHODS[name](model, _little(size), lam)  # allocations of the first call are not counted
    blocks = size.length // size.block
    with PeakMemory() as memory:
        METHODS[name](model, replace(size, steps=blocks), lam)  # a step for every block will do
    return memory.extra


def _little(size: Size) -> Size:
    return replace(size, prompt=1, length=size.block, steps=2)


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """A row without SWD and one with it; other tokens than the naive loop's are an error."""
    size = size or (SHORT if short else Size())
    model = llada_shaped(size.layers, size.hidden)
    return [_row(model, size, lam) for lam in LAMS]


def _row(model: Pretrained, size: Size, lam: float) -> Row:
    written: dict[str, Tensor] = {}

    def keeping(name: str) -> Callable[[], None]:
        def method() -> None:
            written[name] = METHODS[name](model, size, lam)

        return method

    for method in METHODS.values():
        method(model, _little(size), lam)  # warm
    taken = by_turns({name: keeping(name) for name in METHODS}, size.rounds, warm=False)
    assert torch.equal(written["naive"], written["unmask"]), "the tokens differ"
    row: Row = {
        "rule": f"confidence | swd({lam:g}) | static({size.steps})",
        "shape": f"{size.layers} x {size.hidden}",
        "canvas": f"{size.prompt} + {size.length}, block {size.block}",
        "nfe": size.steps,
        "naive_seconds": median(taken["naive"]),
        "unmask_seconds": median(taken["unmask"]),
        "faster": ratio(taken, "naive", "unmask"),
        "same_tokens": True,
    }
    if size.memory:
        used = {name: in_fresh_process(extra_memory, name, size, lam) for name in METHODS}
        row |= {f"{name}_extra_mb": extra / 1e6 for name, extra in used.items()}
        row["leaner"] = used["naive"] / max(1, used["unmask"])
    return row


BENCH = Bench(
    "models",
    "A whole decode against a naive loop, same tokens (V 126,464, one thread)",
    (
        Column("rule", "rule"),
        Column("shape", "layers x d"),
        Column("canvas", "prompt + answer"),
        Column("nfe", "NFE", "d"),
        Column("naive_seconds", "naive s", ".2f"),
        Column("unmask_seconds", "unmask s", ".2f"),
        Column("faster", "faster", ".1f", "x"),
        Column("naive_extra_mb", "naive extra MB", ".0f"),
        Column("unmask_extra_mb", "unmask extra MB", ".0f"),
        Column("leaner", "leaner", ".1f", "x"),
    ),
    run,
)

if __name__ == "__main__":
    main(BENCH)
