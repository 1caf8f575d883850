"""The engine: one thread owns the model and its batch; rows join and leave at any step."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from threading import Condition, Thread
from time import monotonic, perf_counter
from typing import Protocol

import torch

from unmask.decoding.loop import Batch, Failure
from unmask.decoding.request import Request
from unmask.decoding.results import Result, Step
from unmask.errors import RequestError, RuleError
from unmask.models.denoiser import Denoiser
from unmask.server.alarm import Alarm
from unmask.server.fairness import Account, next_rows
from unmask.server.lanes import TimeShares, can_take_turns, lane_of

LOG = logging.getLogger("unmask.server")


class Full(Exception):  # noqa: N818  (as queue.Full)
    """The queue has no free place."""


class Closing(Exception):  # noqa: N818
    """The server is shutting down and takes no new requests."""


@dataclass(frozen=True)
class RowOutcome:
    """How a row ended: with a result, with an error, or with neither if `see` returned True."""

    result: Result | None = None
    error: BaseException | None = None


class RowTask(Protocol):
    """A row to decode and its callbacks, which the engine's thread calls between two forwards.

    A row that is cancelled, fails or starts again gets no `close`. A row that starts again gets a
    new `begin`.
    """

    request: Request
    account: Account  # what the row's HTTP request has spent
    apart: bool  # the row decides without other rows; set by the engine
    started: float  # when the row entered the batch; set by the engine

    def begin(self) -> None:
        """The row enters the batch."""

    def see(self, step: Step, row: int) -> bool:
        """Take row `row` of a step; True ends the row early."""

    def close(self, result: Result | None) -> None:
        """The row is done; the result is None if `see` ended it."""

    def end(self, outcome: RowOutcome) -> None:
        """Take the outcome, from any thread; not called after `cancel`. The first call counts."""


@dataclass
class EngineCounts:
    """Counts since the start of the engine."""

    forwards: int = 0
    row_forwards: int = 0  # a forward of eight rows counts eight
    tokens: int = 0  # written by finished rows
    finished: int = 0
    failed: int = 0
    cancelled: int = 0


class Engine:
    """Continuous batching: up to `batch_size` rows at once, shared fairly (`next_rows`).

    A failing row does not fail other rows. Rows that shared its decision start again, each apart;
    rows that shared a failed forward start again one by one. Decoding is deterministic, so their
    results are the same. The engine's thread catches every exception: none of them can be meant
    for it, and a dead thread would leave requests without an answer.
    """

    def __init__(
        self, model: Denoiser, batch_size: int = 8, queue_size: int = 64, most_forwards: int = 4096
    ) -> None:
        self.batch_size, self.queue_size = batch_size, queue_size
        self.most_forwards = most_forwards
        self.counts = EngineCounts()
        self.alarm = Alarm()
        self.broken = self.closing = False
        self._batch = Batch(model, keep_logits=True)  # traces read them
        self._takes_turns, self._shares = can_take_turns(model), TimeShares()
        self._changed = Condition()
        self._waiting: deque[RowTask] = deque()
        self._suspects: deque[RowTask] = deque()  # rows of a failed forward; they run alone
        self._entering: list[RowTask] = []  # taken from the queue, not yet in the batch
        self._running: dict[int, RowTask] = {}
        self._cancelled: set[RowTask] = set()
        self._stopped = False
        self._usual_seconds = 1.0
        self._step_began: float | None = None  # None while there is no work
        self._threads = torch.get_num_threads()  # torch keeps this number per thread
        self._thread = Thread(target=self._run, name="unmask-engine", daemon=True)

    # Called from other threads

    def start(self) -> None:
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Rows that wait for a place in the batch."""
        return len(self._waiting) + len(self._suspects)

    @property
    def rows(self) -> int:
        """Rows in the batch."""
        return len(self._running)

    @property
    def idle(self) -> bool:
        """Whether no row waits or decodes."""
        with self._changed:
            return not (self._waiting or self._suspects or self._entering or self._running)

    @property
    def dead(self) -> bool:
        """Whether the thread has ended before its time."""
        ended = self._thread.ident is not None and not self._thread.is_alive()
        return self.broken or (ended and not self._stopped)

    @property
    def seconds_since_step(self) -> float:
        """How long the present step has taken; 0 while there is no work."""
        began = self._step_began
        return 0.0 if began is None else monotonic() - began

    def wind_alarm(self) -> None:
        """Show that the interpreter runs; while there is no work, the alarm rests."""
        with self._changed:
            if self._step_began is not None:
                self.alarm.wind()

    @property
    def room(self) -> int:
        """Free places in the batch and in the queue."""
        free = 0 if self._suspects else max(0, self.batch_size - len(self._running))
        return self.queue_size + free - len(self._waiting)

    def retry_after(self) -> int:
        """Estimated seconds until a place is free, 1..60, from the time that recent rows took."""
        rounds = (self.waiting + 1) / self.batch_size
        return max(1, min(60, ceil(rounds * self._usual_seconds)))

    def submit(self, tasks: Sequence[RowTask]) -> None:
        """Queue all of these rows, or none."""
        with self._changed:
            if self.closing or self.dead:
                raise Closing
            if len(tasks) > self.room:
                raise Full
            self._waiting.extend(tasks)
            self._changed.notify()

    def cancel(self, tasks: Iterable[RowTask]) -> None:
        """Remove these rows: from the queue at once, from the batch before the next forward."""
        with self._changed:
            for task in tasks:
                if task in self._waiting:
                    self._waiting.remove(task)
                    self.counts.cancelled += 1
                else:
                    self._cancelled.add(task)
            self._changed.notify()

    def close(self) -> None:
        """Take no new rows; queued and running rows go on."""
        with self._changed:
            self.closing = True

    def abort(self, error: BaseException) -> None:
        """End all queued and running rows with this error, now, whatever the thread does."""
        with self._changed:
            running = [*self._entering, *self._running.values()]
            left = [*self._waiting, *self._suspects, *running]
            self._waiting.clear()
            self._cancelled.update(left)
            self._changed.notify()
        for task in left:
            _tell(task, RowOutcome(error=error))

    def stop(self, seconds: float = 5.0) -> bool:
        """End the thread, and wait for it this long; rows that are left get no outcome.

        False if the thread goes on, because a step does not end.
        """
        with self._changed:
            self.closing = self._stopped = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(seconds)
        return not self._thread.is_alive()

    # Called in the engine's thread

    def _run(self) -> None:
        torch.set_num_threads(self._threads)
        try:
            while self._has_work():
                self._drop_cancelled()
                self._fill_batch()
                self._step()
        except BaseException as error:  # our own bug: end all requests instead of blocking them
            self.broken = True
            self.abort(error)
            LOG.exception("the engine failed")
        finally:
            self._step_began = None
            self.alarm.stop()

    def _has_work(self) -> bool:
        with self._changed:
            self._step_began = None
            if not self._is_needed():
                self.alarm.stop()
                self._changed.wait_for(self._is_needed)
                self.alarm.wind()
            self._step_began = monotonic()
            return not self._stopped

    def _is_needed(self) -> bool:
        return bool(self._stopped or self._cancelled or self._running or self.waiting)

    def _drop_cancelled(self) -> None:
        with self._changed:
            cancelled, self._cancelled = self._cancelled, set()
            self._suspects = deque(task for task in self._suspects if task not in cancelled)
            keys = [key for key, task in self._running.items() if task in cancelled]
            for key in keys:
                del self._running[key]
        for key in keys:
            self.counts.cancelled += 1
            self._batch.drop(key)

    def _fill_batch(self) -> None:
        """Fill the batch; while there are suspects, it holds one of them and no other row."""
        with self._changed:
            if self._suspects:
                new = [] if self._running else [self._suspects.popleft()]
            else:
                new = next_rows(self._waiting, self._running.values(), self.batch_size)
            self._entering = new
        self._admit_entering()

    def _admit_entering(self) -> None:
        while self._entering:
            self._admit(self._entering[0])

    def _admit(self, task: RowTask) -> None:
        """Put the first of the entering rows into the batch; what fails fails only this row."""
        task.started = perf_counter()
        task.account.begin()
        try:
            key = self._batch.admit(task.request, task.apart, self._lane(task))
        except BaseException as error:
            self._entering.pop(0)
            self._end_failed(task, error)
            return
        with self._changed:
            self._running[key] = self._entering.pop(0)
        try:
            task.begin()
        except BaseException as error:
            self._batch.drop(key)
            self._fail(key, error)

    def _lane(self, task: RowTask) -> int:
        return lane_of(len(task.request.canvas)) if self._takes_turns else 0

    def _step(self) -> None:
        if not self._running:
            return
        failed: list[Failure] = []
        lane, begin = self._shares.next_lane(self._batch.lanes), perf_counter()
        tasks = [task for task in self._running.values() if self._lane(task) == lane]
        try:
            steps = self._batch.step(failed, lane)
        except BaseException as error:  # any row of the forward may be the cause
            self._restart_alone(error)
            return
        requests = len({task.account for task in tasks})
        self._shares.spend(lane, perf_counter() - begin, requests)
        self.counts.forwards += bool(steps or failed)
        for step in steps:
            self._deliver(step)
        for failure in failed:
            self._restart_apart(failure)

    def _deliver(self, step: Step) -> None:
        results = {result.key: result for result in step.finished}
        self.counts.row_forwards += len(step.keys)
        sizes, forwards = step.lengths.tolist(), step.forward.tolist()
        for row, (key, forward) in enumerate(zip(step.keys, forwards, strict=True)):
            task = self._running[key]
            try:
                done = task.see(step, row) or key in results
                if done:
                    task.close(results.get(key))
                else:
                    task.account.spend(sizes[row])
            except BaseException as error:  # a callback fails only its own row
                self._fail(key, error)
            else:
                if done:
                    self._finish(key, results.get(key))
                elif forward + 1 >= self.most_forwards:
                    most = self.most_forwards
                    self._fail(
                        key, RuleError(f"the rule is not done after {most} forwards; use another")
                    )
            if key not in self._running and key not in results:
                self._batch.drop(key)

    def _finish(self, key: int, result: Result | None) -> None:
        with self._changed:
            task = self._running.pop(key)
        self.counts.finished += 1
        self.counts.tokens += 0 if result is None else len(result.answer)
        self._usual_seconds += 0.1 * (perf_counter() - task.started - self._usual_seconds)
        _tell(task, RowOutcome(result))

    def _fail(self, key: int, error: BaseException) -> None:
        with self._changed:
            task = self._running.pop(key)
        self._end_failed(task, error)

    def _end_failed(self, task: RowTask, error: BaseException) -> None:
        self.counts.failed += 1
        _tell(task, RowOutcome(error=error))
        if not isinstance(error, RuleError | RequestError):
            LOG.error("a request failed", exc_info=error)

    def _restart_apart(self, failure: Failure) -> None:
        """Start the rows of a failed decision again, each deciding without the others."""
        if len(failure.keys) == 1:
            self._fail(failure.keys[0], failure.error)
            return
        with self._changed:
            self._entering = [self._running.pop(key) for key in failure.keys]
        for task in self._entering:
            task.apart = True
        self._admit_entering()

    def _restart_alone(self, error: BaseException) -> None:
        """Queue the rows of a failed forward to run alone; one row, or their number, was bad."""
        self._batch = Batch(self._batch.model, keep_logits=True)
        if len(self._running) == 1:
            self._fail(next(iter(self._running)), error)
            return
        with self._changed:
            self._suspects.extend(self._running.values())
            self._running.clear()
        LOG.error("a forward failed; its %d rows start again alone", self.waiting, exc_info=error)


def _tell(task: RowTask, outcome: RowOutcome) -> None:
    """Give a row its outcome; a row that cannot take it does not keep others from theirs."""
    try:
        task.end(outcome)
    except Exception:
        LOG.exception("an outcome could not be delivered")
