"""Run a sweep: decode and grade in this process, in several processes, or on a Ray cluster."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from threading import Thread

import torch

from unmask.errors import LabError, UnmaskError
from unmask.lab.grading import Tools, selftest
from unmask.lab.summary import Summary
from unmask.lab.sweep.decode import decode, warm_up
from unmask.lab.sweep.environment import environment
from unmask.lab.sweep.plan import Wanted, Work, planned, wanted_of
from unmask.lab.sweep.run_options import LastModel, ProgressListener, RunOptions, Silent, model_of
from unmask.lab.sweep.store import AskedExample, Store
from unmask.models.pretrained import Pretrained
from unmask.models.wrappers.memoised import Memoised
from unmask.rules.plugins import import_parts
from unmask.rules.rule import Rule

POLL = 0.5  # seconds between two checks of the workers' progress
AT_ONCE = 13_000  # rows of a batch with a memo; more would take more than 2 GB


def check_graders(works: Sequence[Work], tools: Tools) -> None:
    """Run the self-test of every task's grader; call it before decoding."""
    for work in {work.bench.name: work for work in reversed(works)}.values():
        selftest(work.bench, list(work.examples), tools)


def run(
    works: Sequence[Work],
    options: RunOptions,
    tools: Tools,
    progress: ProgressListener,
    models: LastModel | None = None,
) -> int:
    """Decode and grade all missing examples; returns how many are held by other workers.

    Pass the same `models` to several calls to keep the model loaded between them.
    """
    with Store(options.store) as store:
        for work in works:
            store.add(work.trial, work.record)
            progress.begin(work, len(work.asks) - len(store.missing(work.trial, work.asks)))
        missing = sum(len(store.missing(work.trial, work.asks)) for work in works)
        if missing:
            options = replace(options, devices=options.devices[:missing])  # no idle workers
            if options.cluster is not None:
                from unmask.lab.ray.driver import decode_on_cluster

                decode_on_cluster(works, options, options.cluster, progress)
            elif len(options.devices) == 1:
                with _released_after_errors(store):
                    decode_here(store, works, options, progress, models or LastModel())
            else:
                _decode_in_workers(store, works, options, progress)
        for work in works:
            grade(store, work, tools)
        return sum(len(store.missing(work.trial, work.asks)) for work in works)


def grader_of(work: Work) -> str:
    """Names and versions of the scorers that make a grade."""
    scorers = ", ".join(f"{scorer.name} {scorer.version}" for scorer in work.bench.graders)
    return f"{work.bench.name} {work.bench.version}: {scorers}"


def grade(
    store: Store,
    work: Work,
    tools: Tools,
    on_done: Callable[[AskedExample], None] = lambda ask: None,
) -> int:
    """Grade all stored answers that the current grader has not graded; returns how many."""
    grader, wanted = grader_of(work), set(work.asks)
    rows = [row for row in store.rows(work.trial) if row.ask in wanted and row.grader != grader]
    answers = []
    for row in rows:
        example = work.by_name[row.ask.example]
        text = row.answer["text"]
        answers.append((example, work.bench.response(example, text, work.preset.name)))
    for number, verdict in work.bench.grades(answers, tools):
        store.grade(work.trial, rows[number].ask, asdict(verdict), grader)
        on_done(rows[number].ask)
    return len(rows)


def summaries(file: Path, works: Sequence[Work]) -> list[Summary]:
    """Read a trial's graded examples from the store; examples that were not asked are left out."""
    with Store(file) as store:
        asked = [set(work.asks) for work in works]
        return [
            Summary.of(work.trial, [row for row in store.rows(work.trial) if row.ask in mine])
            for work, mine in zip(works, asked, strict=True)
        ]


def decode_here(
    store: Store,
    works: Sequence[Work],
    options: RunOptions,
    progress: ProgressListener,
    models: LastModel,
) -> None:
    """Decode in this process what the store lacks."""
    (device,) = options.devices
    store.sign_in(environment(torch.device(device), options.batch_size))
    for group in _groups(works, options.memo):
        if not any(store.missing(work.trial, work.asks) for work in group):
            continue
        model, batch_size = models.of(group[0], device), options.batch_size
        if options.memo:
            batch_size = sum(len(work.examples) for work in group)
            if not _has_shadows(group[0]):
                assert isinstance(model, Pretrained), "a model with a cache has no memo"
                model = Memoised(model)
        if group[0].trial.timing:
            warm_up(group[0], model, batch_size)
        decode(store, group, model, batch_size, progress.done, options.traces)


@contextmanager
def _released_after_errors(store: Store) -> Iterator[None]:
    """After an error or Ctrl-C, give up what was claimed: a notebook's process lives on."""
    try:
        yield
    except BaseException:
        store.release()
        raise


def _groups(works: Sequence[Work], memo: bool) -> Iterator[list[Work]]:
    """Trials that are decoded in one batch: each alone, or with a memo those of one kind.

    A memo has no shadow positions, so rules that need them (WINO) are alone there too.
    """
    alone = [not memo or _has_shadows(work) for work in works]
    yield from ([work] for work, single in zip(works, alone, strict=True) if single)
    together: dict[tuple[object, ...], list[Work]] = {}
    for work, single in zip(works, alone, strict=True):
        if not single:
            together.setdefault(memo_of(work), []).append(work)
    for members in together.values():
        most = max(len(work.examples) for work in members)
        batches = math.ceil(most * len(members) / AT_ONCE)
        size = math.ceil(most / batches)
        for start in range(0, most, size):
            yield [work.only(list(work.by_name)[start : start + size]) for work in members]


def memo_of(work: Work) -> tuple[object, ...]:
    """Equal for trials that reach the same canvases: of one model, task and window."""
    return *model_of(work), work.trial.task, work.trial.block


def _has_shadows(work: Work) -> bool:
    return Rule.parse(work.trial.rule).needs.shadow


def _worker(wanted: Wanted, options: RunOptions, failures: SimpleQueue[str]) -> None:
    """One of several processes: plans the same sweep and decodes examples that are free.

    It puts the reason into `failures` if it cannot go on.
    """
    end_with_parent()
    if options.devices[0] == "cpu":
        torch.set_num_threads(1)
    try:
        for name in options.imports:
            import_parts(name)
        works = planned(wanted, options.data)
        with Store(options.store) as store:
            decode_here(store, works, options, Silent(), LastModel())
    except UnmaskError as error:
        failures.put(str(error))
        sys.exit(2)


def end_with_parent() -> None:
    """End this process once its parent has ended, in whatever way: nobody would read its results.

    What it has claimed is free again, since it is dead.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _decode_in_workers(
    store: Store, works: Sequence[Work], options: RunOptions, progress: ProgressListener
) -> None:
    spawn = multiprocessing.get_context("spawn")
    failures: SimpleQueue[str] = spawn.SimpleQueue()
    shares = [wanted_of(_share(works, options, i)) for i in range(len(options.devices))]
    workers = [
        spawn.Process(target=_worker, args=(share, replace(options, devices=(device,)), failures))
        for share, device in zip(shares, options.devices, strict=True)
    ]
    wanted = {work.trial.key: set(work.asks) for work in works}
    counts = {work.trial.key: len(store.finished(work.trial) & set(work.asks)) for work in works}
    with _running(workers):
        pause = POLL
        while any(worker.is_alive() for worker in workers):
            for worker in workers:
                worker.join(pause / len(workers))
            begun = time.monotonic()
            for work in works:
                count = len(store.finished(work.trial) & wanted[work.trial.key])
                if count > counts[work.trial.key]:
                    progress.done(work, count - counts[work.trial.key])
                    counts[work.trial.key] = count
            pause = max(POLL, 20 * (time.monotonic() - begun))  # leaves the processor to workers
    codes = [worker.exitcode for worker in workers if worker.exitcode]
    if codes and any(store.missing(work.trial, work.asks) for work in works):
        reason = f"exit code {codes[0]}" if failures.empty() else failures.get()
        raise LabError(
            f"{len(codes)} of {len(workers)} workers ended early: {reason}; "
            "finished examples are kept: run the same command again to go on"
        )


def _share(works: Sequence[Work], options: RunOptions, number: int) -> Sequence[Work]:
    """All trials; with a memo a part of the examples, since each worker has its own memo."""
    workers = len(options.devices)
    if not options.memo:
        return works
    return [work.only(list(work.by_name)[number::workers]) for work in works]


@contextmanager
def _running(workers: Sequence[BaseProcess]) -> Iterator[None]:
    """Start all workers, and end them when the block ends."""
    try:
        with _ignoring_interrupts():
            for worker in workers:
                worker.start()
        yield
    finally:
        for worker in workers:
            if worker.pid is not None:
                worker.terminate()
                worker.join()


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Processes that start in this block ignore Ctrl-C: it is for this one, which ends them.

    They inherit the blocked signal. This process gets it when the block ends.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # it unblocks the signal when it starts
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
