"""Generates texts for lm_eval in a full batch; a row leaves it at its stop string."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from unmask.decoding.loop import Batch
from unmask.decoding.request import Request
from unmask.decoding.results import Step
from unmask.models.denoiser import Denoiser
from unmask.models.tokenizer import Tokenizer
from unmask.text.settled import RowCanvas, TextReader


class CountedText(str):
    """A string that also holds its cost: forwards and tokens."""

    __slots__ = ("nfe", "tokens")
    nfe: int
    tokens: int

    def __new__(cls, text: str, nfe: int, tokens: int) -> CountedText:
        generated = super().__new__(cls, text)
        generated.nfe, generated.tokens = nfe, tokens
        return generated

    def __reduce__(self) -> tuple[Any, ...]:
        return CountedText, (str(self), self.nfe, self.tokens)


class TextRequest(NamedTuple):
    """A request and the strings that end its text."""

    request: Request
    until: tuple[str, ...]


def generations(
    model: Denoiser, tokenizer: Tokenizer, texts: Sequence[TextRequest], batch_size: int
) -> Iterator[tuple[int, CountedText]]:
    """Decode all requests; yields the number and the text of each as soon as it is finished.

    A row leaves the batch when its settled text holds one of its stop strings. Later steps could
    only change what comes after that string, so the text is the same as after a full decode.
    """
    batch, readers, admitted = Batch(model), dict[int, TextReader](), 0
    while admitted < len(texts) or len(batch):
        while admitted < len(texts) and len(batch) < batch_size:
            request, until = texts[admitted]
            readers[batch.admit(request)] = TextReader(tokenizer, model.spec, request, until)
            admitted += 1
        for step in batch.step():
            for result in step.finished:
                reading = readers.pop(result.key).read(result.ids, ended=True)
                yield result.key, CountedText(reading.text, result.nfe, reading.tokens)
            for key, text in _stopped(step, readers):
                batch.drop(key)
                del readers[key]
                yield key, text


def _stopped(step: Step, readers: Mapping[int, TextReader]) -> list[tuple[int, CountedText]]:
    """The unfinished rows whose settled text already holds a stop string."""
    stopped = []
    for row, key in enumerate(step.keys):
        reader = readers.get(key)  # finished rows have none
        if reader is not None and reader.stops:
            canvas = RowCanvas.of(step, row)
            reading = reader.settled(canvas)
            if reading.stopped:
                stopped.append((key, CountedText(reading.text, canvas.forward, reading.tokens)))
    return stopped
