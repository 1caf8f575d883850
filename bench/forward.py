"""What a forward saves if its last layer computes only the positions that are read.

    python -m bench.forward [--short] [--json FILE]

A random float32 model of LLaDA's proportions runs a forward for every block of an answer, one
thread, by turns: with all positions in every layer, and as the loop asks for it, with the last
layer from the open block on. The logits of the open block are the same bit by bit; another one is
an error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from bench.common import Shape, llada_shaped
from bench.measure import Bench, Column, Row, by_turns, main, ratio
from unmask.models.denoiser import Canvas
from unmask.models.pretrained import Pretrained

LIKE_LLADA = Shape(12, 1024, 12288)


@dataclass(frozen=True)
class Size:
    """The model, the prompts, and the answer."""

    shape: Shape = LIKE_LLADA
    prompts: tuple[int, ...] = (64, 320)
    answer: int = 64
    block: int = 32
    rounds: int = 3


SHORT = Size(Shape(4, 512, 2048), rounds=2)


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """A row for every prompt."""
    size = size or (SHORT if short else Size())
    model = llada_shaped(size.shape)
    return [_row(model, size, prompt) for prompt in size.prompts]


def _row(model: Pretrained, size: Size, prompt: int) -> Row:
    length = prompt + size.answer
    canvases = [_canvas(model, size, prompt, start) for start in range(prompt, length, size.block)]

    def forwards(from_start: bool) -> torch.Tensor:
        logits = []
        for canvas in canvases:
            hidden = model.trunk(replace(canvas, from_start=from_start))
            places = torch.arange(int(canvas.start), int(canvas.stop))
            logits.append(model.head(hidden, torch.zeros_like(places), places))
        return torch.cat(logits)

    with torch.inference_mode():
        if not torch.equal(forwards(False), forwards(True)):
            raise SystemExit("the logits of the open block differ")
        ways = {"all": lambda: forwards(False), "read": lambda: forwards(True)}
        taken = by_turns(ways, size.rounds)
    forward = min(taken["read"]) / len(canvases)
    return {
        "prompt": prompt,
        "answer": size.answer,
        "ms": 1e3 * forward,
        "ratio": ratio(taken, "all", "read"),
    }


def _canvas(model: Pretrained, size: Size, prompt: int, start: int) -> Canvas:
    """The canvas when the block at `start` opens."""
    tokens = torch.arange(prompt + size.answer)[None] % (size.shape.vocabulary - 2)
    place = torch.arange(tokens.shape[-1])[None]
    masked = place >= start
    return Canvas(
        tokens=tokens.masked_fill(masked, model.spec.mask_id),
        lengths=torch.tensor([tokens.shape[-1]]),
        masked=masked,
        given=place < prompt,
        start=torch.tensor([start]),
        stop=torch.tensor([start + size.block]),
        keys=(0,),
    )


BENCH = Bench(
    "forward",
    "The last layer from the open block on (one thread)",
    (
        Column("prompt", "prompt"),
        Column("answer", "answer"),
        Column("ms", "forward ms", ".0f"),
        Column("ratio", "all positions / those read", ".3f", "x"),
    ),
    run,
)

if __name__ == "__main__":
    main(BENCH)
