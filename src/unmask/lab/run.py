"""A sweep from its first claim to its last verdict, in this process or in several."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

import torch

from unmask.errors import LabError
from unmask.foreign import import_parts
from unmask.lab.decoding import decode
from unmask.lab.environment import environment
from unmask.lab.grading import Tools, selftest
from unmask.lab.grid import Setting
from unmask.lab.store import Ask, Store
from unmask.lab.verdicts import grade
from unmask.lab.work import Work, plan
from unmask.models.base import Denoiser

POLL = 0.5  # seconds between two looks at what the workers have done


class Progress(Protocol):
    """Hears how far a sweep has come."""

    def begin(self, work: Work, done: int) -> None:
        """A trial is looked at; so many of its examples are there already."""
        ...

    def done(self, work: Work, count: int = 1) -> None:
        """More examples of a trial are there."""
        ...


@dataclass(frozen=True)
class Options:
    """How to run, which no result depends on."""

    store: Path
    devices: tuple[str, ...] = ("cpu",)  # a worker each
    batch_size: int = 8
    data: Path | None = None
    traces: Path | None = None  # a folder for the traces of all examples
    imports: tuple[str, ...] = ()  # files and modules with parts that rules name


def check_graders(works: Sequence[Work], tools: Tools) -> None:
    """The self-test of every task's grader, before anything is decoded."""
    seen: dict[str, Work] = {}
    for work in works:
        seen.setdefault(work.bench.name, work)
    for work in seen.values():
        selftest(work.bench, list(work.examples), tools)


def run(
    works: Sequence[Work],
    options: Options,
    tools: Tools,
    progress: Progress,
    models: Models | None = None,
) -> int:
    """Decode and grade all that is missing; returns how many examples others still hold.

    `models` keeps what is loaded for the next call.
    """
    with Store(options.store) as store:
        for work in works:
            store.add(work.trial, work.bench.record(work.preset.name))
            progress.begin(work, len(work.asks) - len(store.missing(work.trial, work.asks)))
        if any(store.missing(work.trial, work.asks) for work in works):
            if len(options.devices) == 1:
                _decode_here(store, works, options, progress, models or Models())
            else:
                _decode_in_workers(store, works, options, progress)
        for work in works:
            grade(store, work, tools)
        return sum(len(store.missing(work.trial, work.asks)) for work in works)


class Models:
    """The model that was loaded last; one at a time, since they are large."""

    def __init__(self) -> None:
        self._name: tuple[str, ...] = ()
        self._model: Denoiser | None = None

    def of(self, work: Work, device: str) -> Denoiser:
        """Load what a trial needs, unless it is there."""
        trial = work.trial
        name = (trial.weights, trial.dtype, trial.cache, device)
        if self._model is None or name != self._name:
            self._model = None  # let the old one go first
            self._model = work.subject.load(torch.device(device), trial.dtype, trial.cache)
            self._name = name
        return self._model


def _decode_here(
    store: Store, works: Sequence[Work], options: Options, progress: Progress, models: Models
) -> None:
    (device,) = options.devices
    store.sign_in(environment(torch.device(device), options.batch_size))
    for work in works:
        if not store.missing(work.trial, work.asks):
            continue

        def tell(_: Ask, work: Work = work) -> None:
            progress.done(work)

        model = models.of(work, device)
        decode(store, work, model, options.batch_size, tell, options.traces)


class _Silent:
    """A worker's progress is seen in the store."""

    def begin(self, work: Work, done: int) -> None:
        pass

    def done(self, work: Work, count: int = 1) -> None:
        pass


def _worker(wanted: dict[Setting, tuple[str, ...]], options: Options) -> None:
    """One process of several: it plans the same sweep and takes what is free of its examples."""
    if options.devices[0] == "cpu":
        torch.set_num_threads(1)
    for name in options.imports:
        import_parts(name)
    works = [work.only(wanted[work.setting]) for work in plan(wanted, options.data)]
    with Store(options.store) as store:
        _decode_here(store, works, options, _Silent(), Models())


def _decode_in_workers(
    store: Store, works: Sequence[Work], options: Options, progress: Progress
) -> None:
    wanted = {work.setting: tuple(work.by_name) for work in works}
    spawn = multiprocessing.get_context("spawn")
    workers = [
        spawn.Process(
            target=_worker,
            args=(wanted, replace(options, devices=(device,))),
        )
        for device in options.devices
    ]
    seen = {work.trial.key: len(store.finished(work.trial) & set(work.asks)) for work in works}
    with _running(workers):
        while any(worker.is_alive() for worker in workers):
            for worker in workers:
                worker.join(POLL / len(workers))
            for work in works:
                count = len(store.finished(work.trial) & set(work.asks))
                if count > seen[work.trial.key]:
                    progress.done(work, count - seen[work.trial.key])
                    seen[work.trial.key] = count
    codes = [worker.exitcode for worker in workers if worker.exitcode]
    if codes and any(store.missing(work.trial, work.asks) for work in works):
        raise LabError(
            f"{len(codes)} of {len(workers)} workers ended early (exit code {codes[0]}); what is "
            "finished is kept: the same command goes on"
        )


@contextmanager
def _running(workers: Sequence[BaseProcess]) -> Iterator[None]:
    """Start all, and leave none behind."""
    try:
        for worker in workers:
            worker.start()
        yield
    finally:
        for worker in workers:
            if worker.pid is not None:
                worker.terminate()
                worker.join()
