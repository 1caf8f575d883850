"""Texts for the harness: a full batch, rows that leave at their stop string, costs kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from unmask.loop import Batch
from unmask.models.base import Denoiser
from unmask.request import Request
from unmask.results import Step
from unmask.server.texts import Frame, Reader
from unmask.tokenizer import Tokenizer


class Generation(str):
    """A text that knows what it cost; to everybody else it is a text like any other."""

    __slots__ = ("nfe", "tokens")
    nfe: int
    tokens: int

    def __new__(cls, text: str, nfe: int, tokens: int) -> Generation:
        made = super().__new__(cls, text)
        made.nfe, made.tokens = nfe, tokens
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Generation, (str(self), self.nfe, self.tokens)


class Ask(NamedTuple):
    """A canvas, and the strings that end its text."""

    request: Request
    until: tuple[str, ...]


def generations(
    model: Denoiser, tokenizer: Tokenizer, asks: Sequence[Ask], batch_size: int
) -> Iterator[tuple[int, Generation]]:
    """Decode all, yielding each text with its ask's number as soon as it is there.

    A row whose final text holds one of its stop strings is finished: what it would write behind
    it, nobody reads. The text is the same as if it had gone on.
    """
    batch, readers, admitted = Batch(model), dict[int, Reader](), 0
    while admitted < len(asks) or len(batch):
        while admitted < len(asks) and len(batch) < batch_size:
            request, until = asks[admitted]
            readers[batch.admit(request)] = Reader(tokenizer, model.spec, request, until)
            admitted += 1
        for step in batch.step():
            for key, text in _finished(step, readers):
                if key not in {result.key for result in step.finished}:
                    batch.drop(key)
                del readers[key]
                yield key, text


def _finished(step: Step, readers: dict[int, Reader]) -> Iterator[tuple[int, Generation]]:
    """The rows that are filled, and those that have come to a stop string."""
    filled = {result.key for result in step.finished}
    for result in step.finished:
        reading = readers[result.key].read(result.ids, ended=True)
        yield result.key, Generation(reading.text, result.nfe, reading.tokens)
    for row, key in enumerate(step.keys):
        if key in filled or not readers[key].stops:
            continue
        frame = Frame.of(step, row)
        reading = readers[key].final(frame)
        if reading.stopped:
            yield key, Generation(reading.text, frame.forward, reading.tokens)
