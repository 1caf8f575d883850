"""Writes the steps of one row to a trace while the run goes on."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from time import perf_counter
from typing import Any, BinaryIO

import numpy as np

from unmask import __version__
from unmask.decoding.loop import decode_steps
from unmask.decoding.request import Request
from unmask.decoding.results import Result, Step
from unmask.errors import RequestError
from unmask.kernels import backend
from unmask.models.denoiser import Denoiser, ModelSpec
from unmask.models.tokenizer import Tokenizer
from unmask.rules.fingerprint import origins_of
from unmask.rules.spelling import for_file
from unmask.trace.recording.alternatives import Cells
from unmask.trace.recording.codec import FORMAT, GZIP, Array
from unmask.trace.recording.columns import Columns, direction
from unmask.trace.recording.records import step_records
from unmask.trace.recording.stack import Glimpse, Stack

STEPS, BYTES, SECONDS = 64, 1 << 24, 0.25  # the most that is buffered before a write

LEVEL = 3  # of compression: level 6 takes twice the time and saves 2%
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def record(
    model: Denoiser, request: Request, stream: BinaryIO, tokenizer: Tokenizer | None = None
) -> Result:
    """Decode a request and write its trace to a stream; the caller closes the stream."""
    kernel = {"kernel": backend(model.device.type)}
    tracer = Tracer(stream, model.spec, request, tokenizer, kernel)
    return tracer.watch(decode_steps(model, [request], keep_logits=True))


class Tracer:
    """Writes one run as gzipped JSON lines: a header, a line for each step, and the end.

    Steps are buffered and computed together, which costs much less than one by one. The caller
    opens and closes the stream.

    Args:
        tokenizer: gives the texts of the tokens; without one the trace has only their ids.
        model: how to load the model again for `unmask replay`: path, dtype, cache...
            and the kernel that computes its statistics.
        branch: the run that the first steps repeat, if this run is a branch.
    """

    def __init__(
        self,
        stream: BinaryIO,
        spec: ModelSpec,
        request: Request,
        tokenizer: Tokenizer | None = None,
        model: dict[str, Any] | None = None,
        branch: dict[str, Any] | None = None,
    ) -> None:
        if request.settings.growth is not None:
            raise RequestError("a trace holds a canvas of one length; give a length, not auto")
        self.stream = stream
        self.request = request
        self.tokenizer = tokenizer
        self._gzip = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
        self._waiting: list[Glimpse] = []
        self._bytes = 0
        self._before: Cells | None = None
        self._words: set[int] = set()  # ids whose words are written
        self._since = perf_counter()
        header = self._header(spec, model or {})
        self._write([{**header, "branch": branch} if branch else header])

    def see(self, step: Step, row: int = 0) -> None:
        """Record one row of a step, which must hold its logits."""
        self._waiting.append(Glimpse(step, row))
        if step.logits is not None:
            self._bytes += step.logits.values.nbytes
        late = perf_counter() - self._since > SECONDS
        if late or len(self._waiting) >= STEPS or self._bytes >= BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered steps."""
        self._since, self._bytes = perf_counter(), 0
        if not self._waiting:
            return
        glimpses, self._waiting = self._waiting, []
        settings, cells = self.request.settings, Cells.of(glimpses)
        stack = Stack.of(glimpses, settings.rule.memory)
        columns = Columns.of(settings.rule, stack, cells, self._before)
        self._before = cells.last_step()
        fills = settings.eos in ("stop", "block", "fill") or settings.rule.rewrites
        lines = list(step_records(settings.rule, stack, columns, fills))
        lines[0].update(self._new_words(columns.ids))
        self._write(lines)

    def watch(self, steps: Iterable[Step]) -> Result:
        """Record all steps of a run with one row; returns its result."""
        for step in steps:
            self.see(step)
            for result in step.finished:
                self.finish(result)
                return result
        raise AssertionError("a run ends with a result")

    def finish(self, result: Result) -> None:
        """Close with a result and its text as `unmask run` prints it."""
        ids = result.canvas.tolist() if self.request.length is None else result.ids
        known = self.tokenizer
        self.close(result, None if known is None else known.decode(ids, skip_special=True))

    def close(self, result: Result | None = None, answer: str | None = None) -> None:
        """Write the buffered steps and the result; None if the run was cut off."""
        self.flush()
        if result is not None:
            self._write([{"end": {"nfe": result.nfe, "nfe_eos": result.nfe_eos, "text": answer}}])
        self.stream.write(self._gzip.flush())
        self.stream.flush()

    def _header(self, spec: ModelSpec, model: dict[str, Any]) -> dict[str, Any]:
        request, settings = self.request, self.request.settings
        canvas = request.canvas.cpu().numpy()
        origins = origins_of(settings.rule)
        return {
            "trace": FORMAT,
            "unmask": __version__,
            "model": {"name": spec.name, **model},
            "spec": {key: value for key, value in vars(spec).items() if key != "recommended"},
            "settings": {
                "rule": for_file(settings.rule),
                "block": settings.block,
                "eos": settings.eos,
                "sampling": vars(settings.sampling),
                "steps": settings.steps,
                "allow_mask": settings.allow_mask,
                "history": settings.history,
            },
            **({"parts": origins} if origins else {}),
            **({} if settings.language is None else {"language": settings.language.name}),
            **({"rewrites": True} if settings.rule.rewrites else {}),
            "kl": direction(settings.rule),
            "seed": request.seed,
            "length": request.length,
            "canvas": canvas.tolist(),
            **self._new_words(canvas, np.array([spec.mask_id, *spec.stop_ids])),
        }

    def _new_words(self, *ids: Array) -> dict[str, dict[str, str]]:
        """The words of the ids that were not written yet."""
        if self.tokenizer is None:
            return {}
        new = sorted({number for column in ids for number in column.tolist()} - self._words)
        if not new:
            return {}
        self._words.update(new)
        return {"words": {str(number): self.tokenizer.word(number) for number in new}}

    def _write(self, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            self.stream.write(self._gzip.compress(_ENCODER.encode(line).encode() + b"\n"))
        self.stream.write(self._gzip.flush(zlib.Z_SYNC_FLUSH))
        self.stream.flush()
