"""Estimate the time of a run with a memo, which decodes all trials of a task in one batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import torch

from unmask.lab.report.wording import counted
from unmask.lab.sweep.cost import duration
from unmask.lab.sweep.grid import Setting
from unmask.lab.sweep.plan import Work, plan
from unmask.lab.sweep.run import decode_here, memo_of
from unmask.lab.sweep.run_options import LastModel, RunOptions, Silent
from unmask.lab.sweep.store import Store


def memo_dry_run(settings: Iterable[Setting], options: RunOptions) -> Iterator[str]:
    """The cost in lines: one example of every task and window is decoded with all rules.

    Rules share the forwards of equal canvases, but examples share none. So the time goes with the
    number of examples.
    """
    kinds: dict[tuple[object, ...], list[Work]] = {}
    for work in plan(settings, options.data):
        kinds.setdefault(memo_of(work), []).append(work)
    models, workers = LastModel(), len(options.devices)
    total = 0.0
    with _one_thread(workers > 1):
        for members in kinds.values():
            left = _left(members, options.store)
            trial = members[0].trial
            where = f"{trial.task}, {trial.window}: {counted(len(members), 'trial')}"
            if not left:
                yield f"{where}, nothing left"
                continue
            if not total:
                _seconds(members[:1], left[0], options, models)  # pays for what is done only once
            seconds = len(left) * _seconds(members, left[0], options, models) / workers
            total += seconds
            examples = counted(len(left), "example")
            yield f"{where}, {examples} left, about {duration(seconds)}"
    yield (
        f"about {duration(total)} on this machine ({options.devices[0]}, "
        f"{counted(workers, 'worker')}), by a trial run of one example of each line; loading and "
        "grading are extra"
    )


def _left(works: Sequence[Work], file: Path) -> list[str]:
    """The examples that some trial lacks."""
    if not file.is_file():
        return list(works[0].by_name)
    with Store(file) as store:
        missing = [store.missing(work.trial, work.asks) for work in works]
    return list(dict.fromkeys(ask.example for some in missing for ask in some))


def _seconds(works: Sequence[Work], name: str, options: RunOptions, models: LastModel) -> float:
    """How long one example takes with all rules, in one process."""
    with TemporaryDirectory() as folder:
        alone = replace(options, store=Path(folder) / "s.sqlite", devices=options.devices[:1])
        with Store(alone.store) as store:
            single = [work.only([name]) for work in works]
            for work in single:
                store.add(work.trial, work.record)
            begin = perf_counter()
            decode_here(store, single, alone, Silent(), models)
            return perf_counter() - begin


@contextmanager
def _one_thread(wanted: bool) -> Iterator[None]:
    """One thread, as each of several workers has."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if wanted else threads)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
