"""A row to decode and who follows it: what the engine and its callers share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from time import perf_counter
from typing import Protocol

from unmask.decoding.request import Request
from unmask.decoding.results import Result, Step


class Full(Exception):  # noqa: N818  (as queue.Full)
    """No place is left in the queue."""


class Closing(Exception):  # noqa: N818
    """The server goes down: no request is taken any more."""


class Listener(Protocol):
    """Follows one row. Everything is called in the engine's thread, between two forwards.

    A row that is cancelled, that fails or that has to begin again is left without `close`.
    """

    def see(self, step: Step, row: int) -> bool | None:
        """One step; the row is `row` of its tensors. True lets the row go: there is enough."""
        ...

    def close(self, result: Result | None) -> None:
        """The row is done: with its result, or with None because a listener had enough."""
        ...


@dataclass(frozen=True)
class Outcome:
    """How a row ended: with a result, with an error, or with neither: a listener had enough."""

    result: Result | None = None
    error: Exception | None = None


class Task:
    """One row to decode.

    Args:
        request: its canvas and settings.
        listen: makes the listeners. A row that has to begin again (another one spoiled their
            common step) gets new ones.
        tell: hears the outcome, once, from any thread; not of a task that was cancelled.
    """

    def __init__(
        self,
        request: Request,
        listen: Callable[[], Sequence[Listener]],
        tell: Callable[[Outcome], None],
    ) -> None:
        self.request = request
        self.apart = False
        self.begun = 0.0
        self._listen, self._tell = listen, tell
        self._listeners: Sequence[Listener] = ()
        self._told = Lock()

    def begin(self) -> None:
        """The row enters the batch."""
        self.begun = perf_counter()
        self._listeners = self._listen()

    def see(self, step: Step, row: int) -> bool:
        """Show a step to every listener; whether one of them has enough."""
        enough = [listener.see(step, row) for listener in self._listeners]
        return any(enough)

    def close(self, result: Result | None) -> None:
        """The row is done."""
        for listener in self._listeners:
            listener.close(result)

    def end(self, outcome: Outcome) -> None:
        """Tell the outcome, unless one was told before."""
        if self._told.acquire(blocking=False):
            self._tell(outcome)
