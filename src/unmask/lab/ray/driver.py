"""A sweep on a Ray cluster: its workers decode; this process hands out examples and keeps answers.

Only this process writes to the store, so a worker that dies takes nothing with it: what it had is
given back and handed out again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from warnings import warn

from unmask.errors import LabError
from unmask.lab.ray.interrupts import Interrupts, noted_interrupts
from unmask.lab.ray.join import Cluster, Slots, first_line, joined
from unmask.lab.ray.worker import Share, marks_of
from unmask.lab.ray.worker_handle import WorkerHandle
from unmask.lab.sweep.plan import Work, wanted_of
from unmask.lab.sweep.run_options import ProgressListener, RunOptions

POLL = 5.0  # seconds between two signs of life where nothing is heard
PATIENCE = 30.0  # seconds until a cluster without a free place is told of
MOST_DEATHS = 3  # in a row for each worker, with no example finished in between


def share_of(works: Sequence[Work], options: RunOptions, device: str) -> Share:
    """What the workers have to know; paths are made to hold in other folders."""
    data, traces = (path and path.absolute() for path in (options.data, options.traces))
    here, size = (Path.cwd(), tuple(sys.path)), options.batch_size
    return Share(wanted_of(works), data, traces, *here, device, size, options.imports)


def decode_on_cluster(
    works: Sequence[Work], options: RunOptions, cluster: Cluster, progress: ProgressListener
) -> None:
    """Decode all that is missing, on as many workers as the cluster has places for."""
    with joined(cluster) as slots:
        crew = Driver(works, options, slots, progress)
        with noted_interrupts() as interrupts:
            try:
                crew.run(interrupts)
            finally:
                crew.dismiss()


class Driver:
    """The workers, and which trial each of them is at.

    A worker decodes one trial at a time, as here, since rules that share a batch share its times.
    """

    def __init__(
        self, works: Sequence[Work], options: RunOptions, slots: Slots, progress: ProgressListener
    ) -> None:
        self.works = {work.trial.key: work for work in works}
        self.options, self.slots, self.progress = options, slots, progress
        self.marks = marks_of(works)
        self.share = share_of(works, options, slots.device)
        self.over: set[str] = set()  # trials with nothing free when they were last looked through
        self.dead = self.deaths = 0  # in all, and since an example was finished
        self.silence = 0.0
        left = sum(len(work.asks) for work in works)
        self.seats = [self._new() for _ in range(min(slots.count, left))]

    def run(self, interrupts: Interrupts) -> None:
        """Until nothing is left that is free or in our hands."""
        while any(seat.work for seat in self.seats) or len(self.over) < len(self.works):
            interrupts.check()
            busy = [seat for seat in self.seats if not seat.idle]
            ready, _ = self.slots.ray.wait([seat.pending for seat in busy], timeout=POLL)
            self._look_after(bool(ready))
            for seat in busy:
                if any(seat.pending is each for each in ready):
                    self._hear(seat)

    def dismiss(self) -> None:
        """End all workers; what they had is free for the next run."""
        for seat in self.seats:
            seat.leave()

    def _look_after(self, heard: bool) -> None:
        for seat in self.seats:
            seat.still_here()
        self.silence = 0.0 if heard else self.silence + POLL
        if self.silence == PATIENCE and not any(seat.store for seat in self.seats):
            warn(
                f"no worker has begun in {PATIENCE:.0f} s: each waits for {self.slots.needs} of "
                "the cluster, which others may hold",
                stacklevel=2,
            )

    def _new(self) -> WorkerHandle:
        return WorkerHandle(self.slots, self.share, self.options.store)

    def _hear(self, seat: WorkerHandle) -> None:
        errors = self.slots.ray.exceptions
        try:
            if seat.work is None:
                seat.sign_in(self.marks)
            elif (answer := seat.next_answer()) is not None:
                seat.keep(*answer)
                self.progress.done(seat.work)
                self.deaths = 0
                return
        except errors.RayTaskError as error:
            raise LabError(f"a worker of the cluster has failed: {error.cause}") from None
        except errors.RayError as error:
            self._replace(seat, error)
            return
        self._occupy(seat)

    def _occupy(self, seat: WorkerHandle) -> None:
        """The next trial for a worker: one of the model it has, with as few others as possible."""
        seat.rest()
        while free := [work for key, work in self.works.items() if key not in self.over]:
            work = min(free, key=lambda work: (not seat.has_model_of(work), self._at(work)))
            began = seat.begin(work)
            if not seat.open:  # this pass has seen all of it
                self.over.add(work.trial.key)
            if began:
                return

    def _at(self, work: Work) -> int:
        return sum(seat.work is work for seat in self.seats)

    def _replace(self, seat: WorkerHandle, error: Exception) -> None:
        """A worker has died: others do what it had, and a new one takes its place."""
        seat.leave()
        self.dead += 1
        self.deaths += 1
        if self.deaths >= MOST_DEATHS * len(self.seats):
            raise LabError(
                f"{self.deaths} workers of the cluster died with nothing finished in between; what "
                f"is finished is kept. Of the last one Ray says: {first_line(error)}"
            )
        warn(f"a worker has died ({self.dead} so far); another one takes its place", stacklevel=2)
        self.over.clear()
        self.seats[self.seats.index(seat)] = self._new()
        for other in self.seats:
            if other.idle:
                self._occupy(other)
