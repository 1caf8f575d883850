"""A forward as the loop asks for it, against the one of an original loop.

    python -m bench.forward [--short] [--json FILE]

A random model of LLaDA's proportions runs a forward for every block of an answer, one thread, by
turns, in three ways. "Original": all positions in every layer, logits and a softmax of the whole
canvas, products as torch makes them. "All": all positions in every layer, logits of the open block.
"Ours": the last layer from the open block on too. "All" and "ours" make their products with our
kernel where it serves, and on a processor that does not multiply bfloat16 they widen it. In float32
the logits of "all" and "ours" must be the same, bit by bit; equal tokens are those of the open
blocks, against the original's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import torch

from bench.common import Shape, llada_shaped, torch_layers, torch_products
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
    dtypes: tuple[torch.dtype, ...] = (torch.float32, torch.bfloat16)


SHORT = Size(Shape(4, 512, 2048), rounds=2)


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """A row for every dtype and prompt."""
    size = size or (SHORT if short else Size())
    model, rows = llada_shaped(size.shape), []
    for dtype in size.dtypes:
        model.module.to(dtype)
        rows += [_row(model, size, prompt) for prompt in size.prompts]
    return rows


def _row(model: Pretrained, size: Size, prompt: int) -> Row:
    length = prompt + size.answer
    canvases = [_canvas(model, size, prompt, start) for start in range(prompt, length, size.block)]
    ways = {
        "original": partial(_original, model, canvases),
        "all": partial(_forwards, model, canvases, False),
        "ours": partial(_forwards, model, canvases, True),
    }
    with torch.inference_mode():
        logits = {name: way() for name, way in ways.items()}
        if model.dtype == torch.float32 and not torch.equal(logits["all"], logits["ours"]):
            raise SystemExit("the logits of the open block differ")
        taken = by_turns(ways, size.rounds, warm=False)
    same = logits["original"].argmax(-1) == logits["ours"].argmax(-1)
    return {
        "dtype": str(model.dtype).removeprefix("torch."),
        "prompt": prompt,
        "answer": size.answer,
        "ms": 1e3 * min(taken["ours"]) / len(canvases),
        "cut": ratio(taken, "all", "ours"),
        "original": ratio(taken, "original", "ours"),
        "same": float(same.double().mean()),
    }


def _forwards(model: Pretrained, canvases: list[Canvas], cut: bool) -> torch.Tensor:
    """The logits of the open blocks, as the loop asks for them."""
    logits = []
    for canvas in canvases:
        place = torch.arange(canvas.tokens.shape[-1])
        read = (place >= canvas.start[:, None]) & (place < canvas.stop[:, None])
        hidden = model.trunk(replace(canvas, read=read if cut else None))
        places = torch.arange(int(canvas.start), int(canvas.stop))
        logits.append(model.head(hidden, torch.zeros_like(places), places))
    return torch.cat(logits)


def _original(model: Pretrained, canvases: list[Canvas]) -> torch.Tensor:
    """The logits of the open blocks, from logits and a softmax of the whole canvas."""
    logits = []
    with torch_layers(), torch_products():
        for canvas in canvases:
            whole = model.module.logits(model.module(canvas.tokens))
            whole.softmax(-1)
            logits.append(whole[0, int(canvas.start) : int(canvas.stop)])
    return torch.cat(logits)


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
    "A forward against an original loop's (one thread)",
    (
        Column("dtype", "dtype"),
        Column("prompt", "prompt"),
        Column("answer", "answer"),
        Column("ms", "ours ms", ".0f"),
        Column("cut", "all / ours", ".3f", "x"),
        Column("original", "original / ours", ".2f", "x"),
        Column("same", "equal tokens", ".1%"),
    ),
    run,
)

if __name__ == "__main__":
    main(BENCH)
