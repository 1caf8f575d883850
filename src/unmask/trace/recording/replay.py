"""Replays a trace bit for bit, or continues it from some step under another rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

import torch

from unmask.decoding.decide import by_rule
from unmask.decoding.loop import Batch
from unmask.decoding.request import Request, Settings, infill_request
from unmask.decoding.results import Step
from unmask.decoding.state import State
from unmask.kernels import MODULES, backend, missing, use
from unmask.models.denoiser import Denoiser
from unmask.models.languages import Languages
from unmask.models.tokenizer import Tokenizer
from unmask.rules.rule import Decision, Rule
from unmask.rules.spelling import for_file
from unmask.rules.view import View
from unmask.trace.recording.codec import TraceError
from unmask.trace.recording.reading import Moment, Trace
from unmask.trace.recording.tracer import Tracer


@dataclass(frozen=True)
class Difference:
    """The first step in which two runs differ."""

    step: int  # from 0
    what: str  # "decision": other positions or tokens; "numbers": only the statistics differ
    where: tuple[int, ...] = ()  # the positions that differ

    def __str__(self) -> str:
        if self.what == "numbers":
            return f"from step {self.step + 1} on the numbers differ in their last digits"
        places = ", ".join(map(str, self.where)) or "the number of steps"
        return f"step {self.step + 1} writes other tokens: {places}"


def replay(trace: Trace, model: Denoiser, tokenizer: Tokenizer | None = None) -> bytes:
    """Run a trace again; returns the bytes of a new trace, to compare with `difference`."""
    branch = trace.header.get("branch")
    script = trace.moments[: branch["step"]] if branch else ()
    request = request_of(trace, model, trace.settings, tokenizer)
    return _traced(trace, model, request, script, tokenizer, branch)


def branch(
    trace: Trace, model: Denoiser, step: int, rule: Rule, tokenizer: Tokenizer | None = None
) -> bytes:
    """Run the first `step` steps as recorded, then another rule; returns a new trace's bytes.

    The new rule also sees the first steps, so it has its own history and credit of them. Only the
    commitments of these steps are those of the old run.
    """
    if not 0 <= step <= len(trace.moments):
        raise TraceError(
            f"{trace.name} has {len(trace.moments)} steps; branch after 0 to "
            f"{len(trace.moments)} of them, got {step}"
        )
    if step and str(rule) != str(trace.rule):
        _check_branch(trace.rule, rule, step)
    request = request_of(trace, model, replace(trace.settings, rule=rule), tokenizer)
    origin = {"of": trace.name, "rule": for_file(trace.rule), "step": step}
    return _traced(trace, model, request, trace.moments[:step], tokenizer, origin)


def _check_branch(old: Rule, new: Rule, step: int) -> None:
    if new.window is not None:
        raise TraceError(
            f"{new} decides where its blocks end, so it cannot follow the first {step} steps of "
            "another run; branch after 0 steps"
        )
    if old.rewrites:
        raise TraceError(
            f"{old} writes over tokens, which another rule cannot follow for {step} steps; branch "
            "after 0 steps"
        )


def difference(old: Trace, new: Trace) -> Difference | None:
    """The first step in which two runs of the same canvas differ; None if none does."""
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
    """The positions that only one of two steps wrote, or that got different tokens."""
    written = {*was.writes.items()} ^ {*now.writes.items()}
    return tuple(sorted({place for place, _ in written} | ({*was.revoked} ^ {*now.revoked})))


def request_of(
    trace: Trace, model: Denoiser, settings: Settings, tokenizer: Tokenizer | None = None
) -> Request:
    """The request of a trace, for a model with the same vocabulary."""
    spec, known = model.spec, trace.spec
    if (spec.mask_id, spec.vocab_size) != (known.mask_id, known.vocab_size):
        raise TraceError(
            f"{trace.name} was made with mask id {known.mask_id} of {known.vocab_size} tokens, and "
            f"{spec.name} has mask id {spec.mask_id} of {spec.vocab_size}; give the same model"
        )
    if notation := trace.header.get("language"):
        if tokenizer is None:
            raise TraceError(f"{trace.name} was made in a language, which needs the tokenizer")
        settings = replace(settings, language=Languages(tokenizer, spec.vocab_size)(notation))
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
    with _kernel_of(trace):
        source = {**trace.header["model"], "kernel": backend(model.device.type)}
        tracer = Tracer(out, model.spec, request, tokenizer, source, origin)
        own = origin is None or origin["rule"] == for_file(request.settings.rule)
        tracer.watch(_steps(model, request, Script(script, own)))
    return out.getvalue()


def _kernel_of(trace: Trace) -> AbstractContextManager[None]:
    """Use the kernel of the trace, because another one rounds differently; if it can be used."""
    name = trace.kernel
    return use(name) if name in MODULES and missing(name) is None else nullcontext()


def _steps(model: Denoiser, request: Request, script: Script) -> Iterator[Step]:
    batch = Batch(model, keep_logits=True, decide=script)
    batch.admit(request)
    while len(batch):
        yield from batch.step()


@dataclass(frozen=True)
class Script:
    """Decides the first steps of one row as they were recorded; the rule decides the others.

    The rule also sees the recorded steps, with the tokens that were written in them.
    """

    moments: Sequence[Moment]
    own: bool = True  # whether the same rule made them; another one writes nothing in them

    def __call__(self, settings: Settings, state: State, view: View) -> tuple[View, Decision]:
        forward, start = int(state.nfe[0]), state.start[0]
        if forward >= len(self.moments):
            return by_rule(settings, state, view)
        moment, token = self.moments[forward], view.token.clone()
        committed = torch.tensor(list(moment.committed), dtype=torch.int64) - start
        revoked = torch.tensor(list(moment.revoked), dtype=torch.int64) - start
        places = torch.cat([committed, revoked])
        if ((places < 0) | (places >= token.shape[-1])).any():
            raise TraceError(f"step {forward + 1} of the trace writes outside the window of a run")
        token[0, committed] = torch.tensor(list(moment.committed.values()), dtype=torch.int64)
        view, decision = by_rule(settings, state, replace(view, token=token))
        chosen, taken_back = torch.zeros_like(view.masked), torch.zeros_like(view.masked)
        chosen[0, committed], taken_back[0, revoked] = True, True
        if not self.own:
            decision = replace(decision, written=None, tokens=None, held=None, finished=None)
        return view, replace(decision, chosen=chosen, revoked=taken_back)
