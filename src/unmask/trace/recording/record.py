"""Decodes one request and writes its trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

from unmask.decoding.loop import decode_steps
from unmask.decoding.request import Request
from unmask.decoding.results import Result, Step
from unmask.models.denoiser import Denoiser
from unmask.models.tokenizer import Tokenizer
from unmask.trace.recording.tracer import Tracer


def record(
    model: Denoiser, request: Request, stream: BinaryIO, tokenizer: Tokenizer | None = None
) -> Result:
    """Decode a request and write its trace to a stream; the caller closes the stream."""
    tracer = Tracer(stream, model.spec, request, tokenizer)
    return watched(tracer, decode_steps(model, [request], keep_logits=True))


def watched(tracer: Tracer, steps: Iterable[Step]) -> Result:
    """Pass all steps of a run with one row to a tracer, and return the result."""
    for step in steps:
        tracer.see(step)
        for result in step.finished:
            tracer.finish(result)
            return result
    raise AssertionError("a run ends with a result")
