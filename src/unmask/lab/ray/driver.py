"""Run a sweep on a Ray cluster: workers decode, this process hands out examples and stores answers.

Only this process writes to the store. If a worker dies, its examples go to other workers.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from warnings import warn

from unmask.errors import LabError
from unmask.lab.ray.join import Cluster, Slots, first_line, joined
from unmask.lab.ray.worker import Share, marks_of
from unmask.lab.ray.worker_handle import WorkerHandle
from unmask.lab.sweep.plan import Work, wanted_of
from unmask.lab.sweep.run_options import ProgressListener, RunOptions

POLL = 5.0  # seconds to wait for workers before the next sign of life
PATIENCE = 30.0  # seconds until a warning that no worker has started
MOST_DEATHS = 3  # in a row for each worker, with no example finished in between


def share_of(works: Sequence[Work], options: RunOptions, device: str) -> Share:
    """The data that every worker gets; paths are absolute."""
    data, traces = (path and path.absolute() for path in (options.data, options.traces))
    here, size = (Path.cwd(), tuple(sys.path)), options.batch_size
    return Share(wanted_of(works), data, traces, *here, device, size, options.imports)


def decode_on_cluster(
    works: Sequence[Work], options: RunOptions, cluster: Cluster, progress: ProgressListener
) -> None:
    """Decode all missing examples on as many workers as the cluster has room for."""
    with joined(cluster) as slots:
        driver = Driver(works, options, slots, progress)
        with noted_interrupts() as interrupts:
            try:
                driver.run(interrupts)
            finally:
                driver.dismiss()


class Driver:
    """Assigns trials to workers.

    A worker decodes one trial at a time, since trials that share a batch share its seconds.
    """

    def __init__(
        self, works: Sequence[Work], options: RunOptions, slots: Slots, progress: ProgressListener
    ) -> None:
        self.works = {work.trial.key: work for work in works}
        self.options, self.slots, self.progress = options, slots, progress
        self.marks = marks_of(works)
        self.share = share_of(works, options, slots.device)
        self.over: set[str] = set()  # trials that had no free example at the last check
        self.dead = self.deaths = 0  # in total, and since the last finished example
        self.silence = 0.0
        left = sum(len(work.asks) for work in works)
        self.workers = [self._new() for _ in range(min(slots.count, left))]

    def run(self, interrupts: Interrupts) -> None:
        """Run until no example is free or in work."""
        while any(worker.work for worker in self.workers) or len(self.over) < len(self.works):
            interrupts.check()
            busy = [worker for worker in self.workers if not worker.idle]
            ready, _ = self.slots.ray.wait([worker.pending for worker in busy], timeout=POLL)
            self._look_after(bool(ready))
            for worker in busy:
                if any(worker.pending is each for each in ready):
                    self._hear(worker)

    def dismiss(self) -> None:
        """End all workers and give up their claims."""
        for worker in self.workers:
            worker.leave()

    def _look_after(self, heard: bool) -> None:
        for worker in self.workers:
            worker.still_here()
        self.silence = 0.0 if heard else self.silence + POLL
        if self.silence == PATIENCE and not any(worker.store for worker in self.workers):
            warn(
                f"no worker has started in {PATIENCE:.0f} s: each waits for {self.slots.needs}, "
                "which other programs may use",
                stacklevel=2,
            )

    def _new(self) -> WorkerHandle:
        return WorkerHandle(self.slots, self.share, self.options.store)

    def _hear(self, worker: WorkerHandle) -> None:
        errors = self.slots.ray.exceptions
        try:
            if worker.work is None:
                worker.sign_in(self.marks)
            elif (answer := worker.next_answer()) is not None:
                worker.keep(*answer)
                self.progress.done(worker.work)
                self.deaths = 0
                return
        except errors.RayTaskError as error:
            raise LabError(f"a worker of the cluster has failed: {error.cause}") from None
        except errors.RayError as error:
            self._replace(worker, error)
            return
        self._occupy(worker)

    def _occupy(self, worker: WorkerHandle) -> None:
        """Give a worker its next trial: preferably of its model, and one that few others decode."""
        worker.rest()
        while free := [work for key, work in self.works.items() if key not in self.over]:
            work = min(free, key=lambda work: (not worker.has_model_of(work), self._at(work)))
            began = worker.begin(work)
            if not worker.open:  # all free examples were handed out
                self.over.add(work.trial.key)
            if began:
                return

    def _at(self, work: Work) -> int:
        return sum(worker.work is work for worker in self.workers)

    def _replace(self, worker: WorkerHandle, error: Exception) -> None:
        """Replace a worker that has died; its examples are free again."""
        worker.leave()
        self.dead += 1
        self.deaths += 1
        if self.deaths >= MOST_DEATHS * len(self.workers):
            raise LabError(
                f"{self.deaths} workers of the cluster died without finishing an example; finished "
                f"examples are kept. Ray's message for the last one: {first_line(error)}"
            )
        warn(f"a worker has died ({self.dead} so far); another one takes its place", stacklevel=2)
        self.over.clear()
        self.workers[self.workers.index(worker)] = self._new()
        for other in self.workers:
            if other.idle:
                self._occupy(other)


class Interrupts:
    """Remembers an interrupt: foreign code may swallow the exception while it cleans up."""

    def __init__(self) -> None:
        self.seen = False

    def check(self) -> None:
        """Raise KeyboardInterrupt if there was an interrupt; call it regularly."""
        if self.seen:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        raise KeyboardInterrupt


@contextmanager
def noted_interrupts() -> Iterator[Interrupts]:
    """Remember Ctrl-C until the end of the block, if this is the main thread."""
    interrupts = Interrupts()
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    signal.signal(signal.SIGINT, interrupts._note)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
