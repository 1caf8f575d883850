"""Replay: the run of a trace once more, bit for bit, or from some step on under another rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

import torch
from torch import Tensor

from unmask.decoding.loop import Batch
from unmask.decoding.request import Request, Settings, infill_request
from unmask.decoding.results import Step
from unmask.decoding.rows import Rows
from unmask.models.denoiser import Denoiser
from unmask.models.tokenizer import Tokenizer
from unmask.rules.rule import Decision, Rule
from unmask.rules.view import View
from unmask.trace.recording.codec import TraceError
from unmask.trace.recording.reading import Moment, Trace
from unmask.trace.recording.record import watched
from unmask.trace.recording.tracer import Tracer


@dataclass(frozen=True)
class Difference:
    """Where two runs part."""

    step: int  # from 0
    what: str  # "decision": other positions or tokens; "numbers": the same ones for other values
    where: tuple[int, ...] = ()  # positions, where they differ

    def __str__(self) -> str:
        if self.what == "numbers":
            return f"from step {self.step + 1} on the numbers differ in their last digits"
        places = ", ".join(map(str, self.where)) or "the number of steps"
        return f"step {self.step + 1} writes otherwise: {places}"


def replay(trace: Trace, model: Denoiser, tokenizer: Tokenizer | None = None) -> bytes:
    """The same run again, as a new trace's bytes; `difference` tells whether they agree."""
    branch = trace.header.get("branch")
    script = trace.moments[: branch["step"]] if branch else ()
    request = request_of(trace, model, trace.settings)
    return _traced(trace, model, request, script, tokenizer, branch)


def branch(
    trace: Trace, model: Denoiser, step: int, rule: Rule, tokenizer: Tokenizer | None = None
) -> bytes:
    """The run up to `step` steps as it was, then under another rule; as a new trace's bytes.

    The new rule sees the first steps too, and what it remembers of them (its history, its credit)
    is what it would have seen there; only the commitments are the old run's.
    """
    if not 0 <= step <= len(trace.moments):
        raise TraceError(
            f"{trace.name} has {len(trace.moments)} steps; branch after 0 to "
            f"{len(trace.moments)} of them, got {step}"
        )
    request = request_of(trace, model, replace(trace.settings, rule=rule))
    origin = {"of": trace.name, "rule": str(trace.rule), "step": step}
    return _traced(trace, model, request, trace.moments[:step], tokenizer, origin)


def difference(old: Trace, new: Trace) -> Difference | None:
    """The first step in which two runs of the same canvas differ; None if no bit does."""
    numbers = None
    for step, (was, now) in enumerate(zip(old.moments, new.moments, strict=False)):
        if (was.writes, was.revoked) != (now.writes, now.revoked):
            return Difference(step, "decision", _parted(was, now))
        if numbers is None and was.digest != now.digest:
            numbers = Difference(step, "numbers")
    if len(old.moments) != len(new.moments) and old.finished:
        return Difference(min(len(old.moments), len(new.moments)), "decision")
    return numbers


def _parted(was: Moment, now: Moment) -> tuple[int, ...]:
    """The positions that only one of two steps wrote, or both with other tokens."""
    written = {*was.writes.items()} ^ {*now.writes.items()}
    return tuple(sorted({place for place, _ in written} | ({*was.revoked} ^ {*now.revoked})))


def request_of(trace: Trace, model: Denoiser, settings: Settings) -> Request:
    """What the trace was asked, for a model of the same vocabulary."""
    spec, known = model.spec, trace.spec
    if (spec.mask_id, spec.vocab_size) != (known.mask_id, known.vocab_size):
        raise TraceError(
            f"{trace.name} was made with mask id {known.mask_id} of {known.vocab_size} tokens, and "
            f"{spec.name} has mask id {spec.mask_id} of {spec.vocab_size}; give the same model"
        )
    request = infill_request(spec, trace.canvas.tolist(), settings, trace.header["seed"])
    return replace(request, length=trace.header["length"])


def _traced(
    trace: Trace,
    model: Denoiser,
    request: Request,
    script: Sequence[Moment],
    tokenizer: Tokenizer | None,
    origin: dict[str, Any] | None,
) -> bytes:
    out = BytesIO()
    tracer = Tracer(out, model.spec, request, tokenizer, trace.header["model"], origin)
    watched(tracer, _steps(model, request, script))
    return out.getvalue()


def _steps(model: Denoiser, request: Request, script: Sequence[Moment]) -> Iterator[Step]:
    batch = Batch(model, keep_logits=True)
    batch.groups[request.settings, None] = Scripted(model, request.settings, script)
    batch.admit(request)
    while len(batch):
        yield from batch.step()


class Scripted(Rows):
    """One row whose first steps are given; the rule watches them and decides from then on."""

    def __init__(self, model: Denoiser, settings: Settings, script: Sequence[Moment]) -> None:
        super().__init__(model, settings, keep_logits=True)
        self.script = script

    def _given(self) -> Moment | None:
        forward = int(self.state.nfe[0])
        return self.script[forward] if forward < len(self.script) else None

    def _view(self, view: View) -> View:
        given = self._given()
        if given is None:
            return view
        token = view.token.clone()
        places = torch.tensor(list(given.committed), dtype=torch.int64)
        written = torch.tensor(list(given.committed.values()), dtype=torch.int64)
        token[0, places - self.state.start[0]] = written
        return replace(view, token=token)

    def _decide(self, view: View) -> Decision:
        decision = super()._decide(view)
        given = self._given()
        if given is None:
            return decision
        chosen = self._flags(view, list(given.committed))
        return replace(decision, chosen=chosen, revoked=self._flags(view, list(given.revoked)))

    def _commit(self, view: View, decision: Decision) -> None:
        super()._commit(view, decision)
        if decision.revoked.any() and not self.needs.drift:  # the rule itself takes nothing back
            columns = decision.revoked.nonzero()[:, 1]
            self._take_back((torch.zeros_like(columns), self.state.start[0] + columns))

    def _flags(self, view: View, positions: list[int]) -> Tensor:
        """True at these canvas positions: [1, W]."""
        flags = torch.zeros_like(view.masked)
        places = torch.tensor(positions, dtype=torch.int64)
        flags[0, places - self.state.start[0]] = True
        return flags
