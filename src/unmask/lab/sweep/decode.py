"""Decode the missing examples of trials; each answer goes into the store as soon as it is there."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import torch

from unmask.decoding.request import Request
from unmask.decoding.results import Step
from unmask.lab.sweep.plan import Work
from unmask.lab.sweep.store import AskedExample, Store
from unmask.models.denoiser import Denoiser, ModelSpec
from unmask.models.tokenizer import Tokenizer
from unmask.text.answers import Answer, decode_requests
from unmask.text.clock import timed_steps
from unmask.trace import Tracer
from unmask.trace.recording.files import Traces, made_folder, together, writable

SIGN_OF_LIFE = 20  # seconds between two of them
Job = tuple[Work, AskedExample]


def decode(
    store: Store,
    works: Sequence[Work],
    model: Denoiser,
    batch_size: int,
    on_done: Callable[[Work], None] = lambda work: None,
    traces: Path | None = None,
) -> None:
    """Claim, decode and store until no example of these trials is free.

    With `traces` every example writes a trace into a folder of its trial.
    """

    def alive(_: Step) -> None:
        store.still_here(SIGN_OF_LIFE)

    jobs = ((work, ask) for work in works for ask in claims(store, work, batch_size))
    tokenizer = works[0].session.tokenizer
    for (work, ask), record in decoded(model, tokenizer, jobs, batch_size, traces, alive):
        store.finish(work.trial, ask, record)
        on_done(work)


def warm_up(work: Work, model: Denoiser, batch_size: int) -> None:
    """Decode a first batch and store nothing: it pays for what a process does only once."""
    jobs = [(work, ask) for ask in work.asks[:batch_size]]
    for _ in decoded(model, work.session.tokenizer, jobs, batch_size):
        pass


def claims(store: Store, work: Work, batch_size: int) -> Iterator[AskedExample]:
    """Claim the free examples of a trial one by one; for batches the longest come first."""
    missing = store.missing(work.trial, work.asks)
    for ask in work.longest_first(missing) if batch_size > 1 else missing:
        if store.claim(work.trial, ask):
            yield ask


def decoded(
    model: Denoiser,
    tokenizer: Tokenizer,
    jobs: Iterable[Job],
    batch_size: int,
    traces: Path | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Decode examples, yielding the record of each as soon as it is there.

    A job is taken only when the batch has a free row. No store is used: the jobs may come from
    another machine.
    """
    taken: list[Job] = []
    requests: list[Request] = []

    def requested() -> Iterator[Request]:
        for work, ask in jobs:
            taken.append((work, ask))
            requests.append(work.request(ask))
            yield requests[-1]

    watch = _Watch(model)
    files = None if traces is None else _traces(traces, tokenizer, taken, requests)
    with nullcontext() if files is None else files:
        see, keep = together(watch, files, on_step), files is not None
        clock = partial(timed_steps, keep_logits=keep)
        for key, answer in decode_requests(model, tokenizer, requested(), batch_size, see, clock):
            record = record_of(answer, watch.written.pop(key), tokenizer, model.spec)
            yield taken[key], {**record, **watch.memory(key)}


def _traces(
    folder: Path, tokenizer: Tokenizer, taken: list[Job], requests: list[Request]
) -> Traces:
    """Writes a trace file for every job that is taken."""

    def stream_of(key: int) -> BinaryIO:
        work, ask = taken[key]
        made_folder(folder / work.trial.key)
        name = re.sub(r"[^\w.-]+", "-", ask.example) + ".trace"
        return writable(folder / work.trial.key / name)

    def tracer(key: int, stream: BinaryIO) -> Tracer:
        work, ask = taken[key]
        source = asdict(work.session.source(work.setting.options))
        about = {**source, "weights": work.trial.weights, "example": ask.example}
        return Tracer(stream, work.session.spec, requests[key], tokenizer, about)

    return Traces(stream_of, tracer)


def record_of(
    answer: Answer, written: list[int], tokenizer: Tokenizer, spec: ModelSpec
) -> dict[str, Any]:
    """The record of an answer for the store; repeated end tokens at its end are kept once."""
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
        **{f"seconds_{name}": value for name, value in answer.seconds.record().items()},
    }


@dataclass
class _Watch:
    """Collects from every step the finished answers and the memory in use."""

    model: Denoiser
    written: dict[int, list[int]] = field(default_factory=dict)
    _memory: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # of every step

    def __post_init__(self) -> None:
        memory_in_use(self.model.device)  # resets the peak, which loading the model has raised

    def __call__(self, step: Step) -> None:
        memory = memory_in_use(self.model.device)
        for key in step.keys:
            self._memory.setdefault(key, []).append(memory)
        for result in step.finished:
            self.written[result.key] = result.answer.tolist()

    def memory(self, key: int) -> dict[str, int]:
        """Bytes in use during an example: the mean over its steps, and the peak."""
        used, peaks = zip(*self._memory.pop(key), strict=True)
        return {"memory_mean": sum(used) // len(used), "memory_peak": max(peaks)}


def memory_in_use(device: torch.device) -> tuple[int, int]:
    """Bytes in use by the GPU or this process: now, and the peak since the last call.

    If the system keeps no peak that can be reset, the peak is the bytes in use now.
    """
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device), peak
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the peak
    except OSError:
        return _resident(), _resident()
    memory = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB$", status, re.MULTILINE))
    used = int(memory.get("VmRSS", 0)) * 1024
    return used, max(used, int(memory.get("VmHWM", 0)) * 1024)


def _resident() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
