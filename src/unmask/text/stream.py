"""Snapshots: one answer as it comes into being, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from unmask.decoding.request import Request
from unmask.models.denoiser import Denoiser
from unmask.models.tokenizer import Tokenizer
from unmask.text.answers import Answer
from unmask.text.clock import Seconds, clocked_steps
from unmask.text.settled import RowCanvas, TextReader


@dataclass(frozen=True)
class Snapshot:
    """A run after one forward pass."""

    step: int  # from 1
    canvas: str  # the answer so far, with masks as `[MASK]`
    settled: str  # the beginning of the answer that no later step can change
    answer: Answer | None = None  # after the last step


def snapshots(model: Denoiser, tokenizer: Tokenizer, request: Request) -> Iterator[Snapshot]:
    """The canvas after every forward pass; the last one holds the answer."""
    reader, spent = TextReader(tokenizer, model.spec, request), Seconds()
    for step, seconds in clocked_steps(model, [request]):
        spent += seconds
        canvas = RowCanvas.of(step, 0)
        infill = request.length is None
        yield Snapshot(
            canvas.forward,
            _drawn(tokenizer, canvas.ids[reader.span.first : reader.span.last], model.spec.mask_id),
            reader.settled(canvas).text,
            *(Answer.of(each, tokenizer, infill, spent) for each in step.finished),
        )


def _drawn(tokenizer: Tokenizer, ids: list[int], mask_id: int) -> str:
    """Tokens as text, with masks as `[MASK]`."""
    runs = ((masked, list(run)) for masked, run in groupby(ids, mask_id.__eq__))
    return "".join("[MASK]" * len(run) if masked else tokenizer.decode(run) for masked, run in runs)
