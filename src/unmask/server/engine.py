"""One thread that owns the model and its batch; requests come and go at any step."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from threading import Condition, Thread
from time import perf_counter

import torch

from unmask.decoding.loop import Batch, Failure
from unmask.decoding.results import Result, Step
from unmask.errors import RuleError
from unmask.models.denoiser import Denoiser
from unmask.server.tasks import Closing, Full, Outcome, Task

LOG = logging.getLogger("unmask.server")


@dataclass
class Counts:
    """What the engine has done since it was started."""

    forwards: int = 0
    row_forwards: int = 0  # a forward of eight rows counts eight
    tokens: int = 0  # written by rows that were finished
    finished: int = 0
    failed: int = 0
    cancelled: int = 0


class Engine:
    """Continuous batching: first come, first served, up to `batch_size` rows at once.

    A row whose decision fails takes down nobody: rows that shared it begin again, each apart, and
    rows that shared a forward that failed begin again one by one. Decoding is deterministic, so
    their results are the same.
    """

    def __init__(
        self, model: Denoiser, batch_size: int = 8, queue_size: int = 64, most_forwards: int = 4096
    ) -> None:
        self.batch_size, self.queue_size = batch_size, queue_size
        self.most_forwards = most_forwards
        self.counts = Counts()
        self.broken = False
        self._batch = Batch(model, keep_logits=True)  # for traces; nobody else holds on to them
        self._changed = Condition()
        self._waiting: deque[Task] = deque()
        self._suspects: deque[Task] = deque()  # a forward with them failed: they run alone
        self._running: dict[int, Task] = {}
        self._cancelled: set[Task] = set()
        self._closing = self._stopped = False
        self._usual_seconds = 1.0
        self._threads = torch.get_num_threads()  # every thread has a number of its own
        self._thread = Thread(target=self._run, name="unmask-engine", daemon=True)

    # What other threads may call

    def start(self) -> None:
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Requests without a row."""
        return len(self._waiting) + len(self._suspects)

    @property
    def rows(self) -> int:
        """Rows in the batch."""
        return len(self._running)

    @property
    def closing(self) -> bool:
        return self._closing

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do."""
        with self._changed:
            return not (self._waiting or self._suspects or self._running)

    @property
    def room(self) -> int:
        """How many more rows would be taken: places in the batch and in the queue."""
        free = 0 if self._suspects else max(0, self.batch_size - len(self._running))
        return self.queue_size + free - len(self._waiting)

    def retry_after(self) -> int:
        """Seconds until there may be a place, by what rows took lately: 1..60."""
        rounds = (self.waiting + 1) / self.batch_size
        return max(1, min(60, ceil(rounds * self._usual_seconds)))

    def submit(self, tasks: Sequence[Task]) -> None:
        """Queue all of them, or none."""
        with self._changed:
            if self._closing or self.broken:
                raise Closing
            if len(tasks) > self.room:
                raise Full
            self._waiting.extend(tasks)
            self._changed.notify()

    def cancel(self, tasks: Iterable[Task]) -> None:
        """Let these go; what waits is gone at once, a row before the next forward."""
        with self._changed:
            for task in tasks:
                if task in self._waiting:
                    self._waiting.remove(task)
                    self.counts.cancelled += 1
                else:
                    self._cancelled.add(task)
            self._changed.notify()

    def close(self) -> None:
        """Take no more; what is here goes on."""
        with self._changed:
            self._closing = True

    def abort(self, error: Exception) -> None:
        """End everything that is left with this error, now."""
        with self._changed:
            left = [*self._waiting, *self._suspects, *self._running.values()]
            self._waiting.clear()
            self._cancelled.update(left)
            self._changed.notify()
        for task in left:
            task.end(Outcome(error=error))

    def stop(self) -> None:
        """End the thread; what is left is not told of it."""
        with self._changed:
            self._closing = self._stopped = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()

    # What only the engine's thread does

    def _run(self) -> None:
        torch.set_num_threads(self._threads)
        try:
            while self._has_work():
                self._let_go()
                self._take_in()
                self._step()
        except Exception as error:  # our own bug: better refused than left waiting
            LOG.exception("the engine has failed")
            self.broken = True
            self.abort(error)

    def _has_work(self) -> bool:
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._stopped
                    or self._waiting
                    or self._suspects
                    or self._running
                    or self._cancelled
                )
            )
            return not self._stopped

    def _let_go(self) -> None:
        with self._changed:
            gone, self._cancelled = self._cancelled, set()
            self._suspects = deque(task for task in self._suspects if task not in gone)
            keys = [key for key, task in self._running.items() if task in gone]
            for key in keys:
                del self._running[key]
        for key in keys:
            self.counts.cancelled += 1
            self._batch.drop(key)

    def _take_in(self) -> None:
        """Fill the batch; while there are suspects, one of them is all of it."""
        with self._changed:
            if self._suspects:
                new = [] if self._running else [self._suspects.popleft()]
            else:
                free = self.batch_size - len(self._running)
                new = [self._waiting.popleft() for _ in range(min(free, len(self._waiting)))]
        for task in new:
            self._admit(task)

    def _admit(self, task: Task) -> None:
        key = self._batch.admit(task.request, task.apart)
        with self._changed:
            self._running[key] = task
        try:
            task.begin()
        except Exception as error:  # a listener's fault is its own request's
            self._batch.drop(key)
            self._fail(key, error)

    def _step(self) -> None:
        failed: list[Failure] = []
        try:
            steps = self._batch.step(failed)
        except Exception as error:  # the forward itself: any row may be the cause
            self._restart_alone(error)
            return
        self.counts.forwards += bool(steps or failed)
        for step in steps:
            self._show(step)
        for failure in failed:
            self._restart_apart(failure)

    def _show(self, step: Step) -> None:
        results = {result.key: result for result in step.finished}
        self.counts.row_forwards += len(step.keys)
        for row, (key, forward) in enumerate(zip(step.keys, step.forward.tolist(), strict=True)):
            try:
                enough = self._running[key].see(step, row)
                if enough or key in results:
                    self._running[key].close(results.get(key))
            except Exception as error:  # a listener's fault is its own request's
                self._fail(key, error)
            else:
                if enough or key in results:
                    self._finish(key, results.get(key))
                elif forward + 1 >= self.most_forwards:
                    most = self.most_forwards
                    self._fail(key, RuleError(f"the rule is not done after {most} forwards"))
            if key not in self._running and key not in results:
                self._batch.drop(key)

    def _finish(self, key: int, result: Result | None) -> None:
        with self._changed:
            task = self._running.pop(key)
        self.counts.finished += 1
        self.counts.tokens += 0 if result is None else len(result.answer)
        self._usual_seconds += 0.1 * (perf_counter() - task.begun - self._usual_seconds)
        task.end(Outcome(result))

    def _fail(self, key: int, error: Exception) -> None:
        with self._changed:
            task = self._running.pop(key)
        self.counts.failed += 1
        if not isinstance(error, RuleError):
            LOG.error("a request has failed", exc_info=error)
        task.end(Outcome(error=error))

    def _restart_apart(self, failure: Failure) -> None:
        """One of these rows spoiled their decision: each begins again without the others."""
        if len(failure.keys) == 1:
            self._fail(failure.keys[0], failure.error)
            return
        with self._changed:
            tasks = [self._running.pop(key) for key in failure.keys]
        for task in tasks:
            task.apart = True
            self._admit(task)

    def _restart_alone(self, error: Exception) -> None:
        """One of these rows spoiled their forward, or they are too many for the memory."""
        self._batch = Batch(self._batch.model, keep_logits=True)
        if len(self._running) == 1:
            self._fail(next(iter(self._running)), error)
            return
        with self._changed:
            self._suspects.extend(self._running.values())
            self._running.clear()
        LOG.error("a forward failed; its %d rows begin again alone", self.waiting, exc_info=error)
