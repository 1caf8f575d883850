"""Decode the examples of a trial that nobody has decoded yet, each into the store at once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from unmask.decoding.request import Request
from unmask.decoding.results import Step
from unmask.lab.sweep.plan import Work
from unmask.lab.sweep.store import AskedExample, Store
from unmask.models.denoiser import Denoiser, ModelSpec
from unmask.models.tokenizer import Tokenizer
from unmask.text.answers import Answer, decode_requests
from unmask.trace import Tracer
from unmask.trace.recording.files import Traces, made_folder, together, writable

SIGN_OF_LIFE = 20  # seconds between two of them


def decode(
    store: Store,
    work: Work,
    model: Denoiser,
    batch_size: int,
    on_done: Callable[[AskedExample], None] = lambda ask: None,
    traces: Path | None = None,
) -> int:
    """Claim, decode and store until no example of the trial is free; returns how many were done.

    With `traces` every example leaves a trace in a folder of the trial's own.
    """
    count = 0
    store.add(work.trial, work.bench.record(work.preset.name))

    def alive(_: Step) -> None:
        store.still_here(SIGN_OF_LIFE)

    asks = claims(store, work, batch_size)
    for ask, record in decoded(work, model, asks, batch_size, traces, alive):
        store.finish(work.trial, ask, record)
        on_done(ask)
        count += 1
    return count


def claims(store: Store, work: Work, batch_size: int) -> Iterator[AskedExample]:
    """Every free example of a trial, claimed as it is taken; for batches the longest first."""
    missing = store.missing(work.trial, work.asks)
    for ask in work.longest_first(missing) if batch_size > 1 else missing:
        if store.claim(work.trial, ask):
            yield ask


def decoded(
    work: Work,
    model: Denoiser,
    asks: Iterable[AskedExample],
    batch_size: int,
    traces: Path | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> Iterator[tuple[AskedExample, dict[str, Any]]]:
    """Decode examples, yielding what is kept of each as soon as it is there.

    An example is taken only when there is a place for it. No store is needed: whoever asks may be
    on another machine.
    """
    taken: list[AskedExample] = []
    requests: list[Request] = []

    def requested() -> Iterator[Request]:
        for ask in asks:
            taken.append(ask)
            requests.append(work.request(ask))
            yield requests[-1]

    watch = _Watch(model)
    tokenizer, spec = work.session.tokenizer, work.session.spec
    with nullcontext() if traces is None else _traces(traces, work, taken, requests) as seen:
        see = together(watch, seen, on_step)
        keep = seen is not None
        answers = decode_requests(model, tokenizer, requested(), batch_size, see, keep)
        for key, answer in answers:
            record = record_of(answer, watch.written.pop(key), tokenizer, spec)
            yield taken[key], {**record, **watch.memory(key)}


def _traces(folder: Path, work: Work, taken: list[AskedExample], requests: list[Request]) -> Traces:
    """Writes a file for every example that is taken."""
    trial, session = work.trial, work.session
    source = session.source(work.setting.options)
    made_folder(folder / trial.key)
    return Traces(
        lambda key: writable(folder / trial.key / f"{_file_name(taken[key].example)}.trace"),
        lambda key, stream: Tracer(
            stream,
            session.spec,
            requests[key],
            session.tokenizer,
            {**asdict(source), "weights": trial.weights, "example": taken[key].example},
        ),
    )


def _file_name(example: str) -> str:
    """The example's name with nothing in it that a file system minds."""
    return re.sub(r"[^\w.-]+", "-", example)


def record_of(
    answer: Answer, written: list[int], tokenizer: Tokenizer, spec: ModelSpec
) -> dict[str, Any]:
    """What is kept of an answer; the end tokens at its very end are kept once."""
    ids = list(written)
    while len(ids) > 1 and ids[-1] == ids[-2] == spec.eos_id:
        ids.pop()
    return {
        "text": tokenizer.decode(ids),
        "ids": ids,
        "tokens": answer.tokens,
        "written": answer.written,
        "nfe": answer.nfe,
        "nfe_eos": answer.nfe_eos,
        "eos_share": sum(token == spec.eos_id for token in written) / len(written),
        "cut_off": answer.cut_off,
        "seconds_model": round(answer.seconds.model, 6),
        "seconds_decision": round(answer.seconds.decision, 6),
        "seconds_kl": round(answer.seconds.kl, 6),
        "seconds_total": round(answer.seconds.total, 6),
    }


@dataclass
class _Memory:
    total: int = 0
    steps: int = 0
    peak: int = 0


@dataclass
class _Watch:
    """Sees every step: what was written, and how much memory is in use."""

    model: Denoiser
    written: dict[int, list[int]] = field(default_factory=dict)
    _memory: dict[int, _Memory] = field(default_factory=dict)

    def __post_init__(self) -> None:
        memory_in_use(self.model.device)  # a peak of loading the model is nobody's

    def __call__(self, step: Step) -> None:
        now, peak = memory_in_use(self.model.device)
        for key in step.keys:
            seen = self._memory.setdefault(key, _Memory())
            seen.total, seen.steps = seen.total + now, seen.steps + 1
            seen.peak = max(seen.peak, peak)
        for result in step.finished:
            self.written[result.key] = result.answer.tolist()

    def memory(self, key: int) -> dict[str, int]:
        """In bytes: the mean over the steps of an example, and the most of any moment."""
        seen = self._memory.pop(key)
        return {"memory_mean": seen.total // seen.steps, "memory_peak": seen.peak}


def memory_in_use(device: torch.device) -> tuple[int, int]:
    """Bytes now and at the most since the last time: of the GPU, or of this process.

    Where the system keeps no peak that can be set back, it is what is in use now.
    """
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device), peak
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    except OSError:
        return _resident(), _resident()
    found = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB$", status, re.MULTILINE))
    used = int(found.get("VmRSS", 0)) * 1024
    return used, max(used, int(found.get("VmHWM", 0)) * 1024)


def _resident() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
