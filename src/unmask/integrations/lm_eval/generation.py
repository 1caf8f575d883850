"""Texts for the harness: a full batch, rows that leave at their stop string, costs kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from unmask.decoding.loop import Batch
from unmask.decoding.request import Request
from unmask.decoding.results import Step
from unmask.models.denoiser import Denoiser
from unmask.models.tokenizer import Tokenizer
from unmask.text.settled import RowCanvas, TextReader


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
    batch, readers, admitted = Batch(model), dict[int, TextReader](), 0
    while admitted < len(asks) or len(batch):
        while admitted < len(asks) and len(batch) < batch_size:
            request, until = asks[admitted]
            readers[batch.admit(request)] = TextReader(tokenizer, model.spec, request, until)
            admitted += 1
        for step in batch.step():
            for result in step.finished:
                reading = readers.pop(result.key).read(result.ids, ended=True)
                yield result.key, Generation(reading.text, result.nfe, reading.tokens)
            for key, text in _stopped(step, readers):
                batch.drop(key)
                del readers[key]
                yield key, text


def _stopped(step: Step, readers: Mapping[int, TextReader]) -> list[tuple[int, Generation]]:
    """The rows that go on, though nobody will read on."""
    found = []
    for row, key in enumerate(step.keys):
        reader = readers.get(key)  # finished rows have none
        if reader is not None and reader.stops:
            canvas = RowCanvas.of(step, row)
            reading = reader.settled(canvas)
            if reading.stopped:
                found.append((key, Generation(reading.text, canvas.forward, reading.tokens)))
    return found
