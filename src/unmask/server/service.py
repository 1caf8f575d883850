"""One model behind HTTP: its engine, metrics and traces, shared by all routes."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import Any

from unmask.models.denoiser import Denoiser
from unmask.server.choices import Choice, choices_of
from unmask.server.engine import LOG, Closing, Engine, Full
from unmask.server.errors import ApiError, failed_row
from unmask.server.fairness import Account
from unmask.server.languages import language_of
from unmask.server.metrics import Metrics
from unmask.server.prepare import (
    PreparedRequest,
    ServedModel,
    check_together,
    prepare,
    rows_of,
    size_field,
)
from unmask.server.schema import ChatRequest, CompletionRequest
from unmask.server.tools import ToolUse
from unmask.server.traces import BeginTrace, TraceElsewhere, TraceStore, nowhere


class Service:
    """One model behind HTTP."""

    def __init__(
        self,
        served: ServedModel,
        model: Denoiser,
        batch_size: int = 8,  # rows that decode at once
        queue_size: int = 64,  # rows that may wait
        begin_trace: BeginTrace | None = None,  # opens a row's trace; None: there are no traces
    ) -> None:
        self.served = served
        self.engine = Engine(model, batch_size, queue_size, served.limits.forwards)
        self.begin_trace, self.traces = begin_trace, TraceStore()
        self.trace_elsewhere: TraceElsewhere = nowhere
        self.metrics = Metrics(self.engine, self.traces)
        self.created = int(time.time())
        self._prepare = ThreadPoolExecutor(1, "unmask-prepare")  # tokenizing blocks a thread
        self._build = ThreadPoolExecutor(1, "unmask-build")  # a language may take seconds
        self._preparing = self._building = 0  # rows; they count against the queue
        self._deadline: float | None = None
        self._stopped = Event()
        self._watch = Thread(target=self._watch_steps, name="unmask-watch", daemon=True)

    def start(self) -> None:
        """Start decoding."""
        self.engine.start()
        self._watch.start()

    def stop(self, seconds: float = 5.0) -> bool:
        """Stop decoding; rows that are left get no outcome. False if a step goes on for longer."""
        self._stopped.set()
        for lane in (self._prepare, self._build):
            lane.shutdown(wait=False, cancel_futures=True)
        return self.engine.stop(seconds)

    # A step that does not end

    @property
    def stuck(self) -> bool:
        """Whether the present step takes longer than a step may take."""
        return self.engine.seconds_since_step > self.served.limits.step_seconds

    def _watch_steps(self) -> None:
        """Answer all rows of a stuck engine; if the step ends after all, the engine goes on."""
        while not self._stopped.wait(min(1.0, self.served.limits.step_seconds / 4)):
            self.engine.wind_alarm()
            if self.stuck:
                self.engine.abort(self._stuck())

    def _stuck(self) -> ApiError:
        seconds = self.served.limits.step_seconds
        message = f"no step has ended for {seconds:g} s; restart the server if this goes on"
        return ApiError(503, message, code="stuck", retry_after=60)

    # Shutting down

    def close(self, grace: float) -> None:
        """Take no new requests, and let the others finish within `grace` seconds."""
        self.engine.close()
        self._deadline = time.monotonic() + grace

    def closed(self) -> bool:
        """Whether all rows have ended; past the deadline, ends those that are left.

        A step that does not end is not waited for after the deadline.
        """
        if self._deadline is None:
            return False
        late = time.monotonic() > self._deadline
        if late:
            self.engine.abort(self._closing())
        return late or self.engine.idle

    def _closing(self) -> ApiError:
        message = "the server is shutting down; try again later, or use another server"
        return ApiError(503, message, code="closing", retry_after=5)

    # Requests

    async def submit(
        self, body: ChatRequest | CompletionRequest, client: str | None = None
    ) -> tuple[PreparedRequest, list[Choice]]:
        """Prepare a request outside the event loop and queue all of its choices, or refuse it.

        `client` is who shares the batch fairly with others; None: only this request does.
        """
        self._check_open()
        check_together(self.served, body)
        if body.trace and self.begin_trace is None:
            raise ApiError(400, "this server keeps no traces; leave out trace", param="trace")
        prepared = await self._prepared(body)
        begin_trace = self.begin_trace if body.trace else None
        session, streamed = self.served.session, bool(body.stream)
        limits = self.served.limits
        account = Account(client, limits.cost, limits.decode_seconds, size_field(body))
        choices = choices_of(session, prepared, streamed, account, begin_trace, self.traces)
        try:
            self.engine.submit(choices)
        except (Full, Closing) as error:
            self._discard_traces(choices)
            if isinstance(error, Full):
                raise self._full() from None
            self._check_open()
            raise
        return prepared, choices

    async def _prepared(self, body: ChatRequest | CompletionRequest) -> PreparedRequest:
        """The rows of a request, if the queue has room for them and for all that come before.

        Requests with a language have a lane of their own and half of the room, since a client's
        language may take seconds to build.
        """
        rows, slow = rows_of(body), language_of(body, ToolUse.of(body)) is not None
        if self._preparing + rows > self.engine.room:
            raise self._full()
        if slow and self._building and self._building + rows > self.engine.room // 2:
            raise self._full()
        self._preparing += rows
        self._building += rows * slow
        try:
            loop, lane = asyncio.get_running_loop(), self._build if slow else self._prepare
            return await loop.run_in_executor(lane, _prepare, self.served, body)
        finally:
            self._preparing -= rows
            self._building -= rows * slow

    def _check_open(self) -> None:
        if self.engine.dead:
            raise ApiError(503, "the engine failed; restart the server", code="failed")
        if self.stuck:
            raise self._stuck()
        if self.engine.closing:
            raise self._closing()

    def cancel(self, choices: list[Choice]) -> None:
        """Free the rows of a request that is over or whose client left."""
        self.engine.cancel(choices)
        self._discard_traces(choices)

    def _discard_traces(self, choices: list[Choice]) -> None:
        """Discard the traces of rows that did not finish."""
        for choice in choices:
            if choice.trace_buffer is not None and not choice.trace_buffer.whole:
                self.traces.close(choice.trace_buffer)

    def _full(self) -> ApiError:
        seconds = self.engine.retry_after()
        message = f"the queue is full; try again in {seconds} s"
        return ApiError(429, message, code="queue_full", retry_after=seconds)

    def health(self) -> dict[str, Any]:
        """The status, the progress, and how many rows decode and wait."""
        engine = self.engine
        states = {"failed": engine.dead, "stuck": self.stuck, "closing": engine.closing}
        return {
            "status": next((name for name, here in states.items() if here), "ok"),
            "model": self.served.name,
            "forwards": engine.counts.forwards,
            "seconds_since_step": round(engine.seconds_since_step, 3),
            "rows": engine.rows,
            "waiting": engine.waiting + self._preparing,
            "batch_size": engine.batch_size,
            "queue_size": engine.queue_size,
        }


def _prepare(served: ServedModel, body: ChatRequest | CompletionRequest) -> PreparedRequest:
    """Prepare a request; whatever a part of its rule raises is answered.

    Some kinds of exceptions, such as SystemExit, would end the event loop.
    """
    try:
        return prepare(served, body)
    except ApiError:
        raise
    except BaseException as error:
        LOG.error("a request failed", exc_info=error)
        raise failed_row(error) from None
