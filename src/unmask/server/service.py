"""What the routes share: the model's engine, its metrics and the traces that are kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from unmask.models.denoiser import Denoiser
from unmask.server.choices import Choice, Ending, choices_of
from unmask.server.engine import Engine
from unmask.server.errors import ApiError
from unmask.server.metrics import Metrics
from unmask.server.prepare import Prepared, Served, prepare
from unmask.server.schema import ChatRequest, CompletionRequest
from unmask.server.tasks import Closing, Full, Outcome
from unmask.server.traces import Begin, Elsewhere, TraceStore, nowhere

T = TypeVar("T")
DOWN = "the server is going down; ask again, or ask another"


class Service:
    """One model behind HTTP.

    Args:
        served: the model as requests see it.
        model: what decodes.
        batch_size: rows that decode at once.
        queue_size: rows that may wait.
        begin_trace: opens the trace of a request; None: requests cannot ask for one.
    """

    def __init__(
        self,
        served: Served,
        model: Denoiser,
        batch_size: int = 8,
        queue_size: int = 64,
        begin_trace: Begin | None = None,
    ) -> None:
        self.served = served
        self.engine = Engine(model, batch_size, queue_size, served.limits.forwards)
        self.begin_trace, self.traces = begin_trace, TraceStore()
        self.trace_elsewhere: Elsewhere = nowhere
        self.metrics = Metrics(self.engine, self.traces)
        self.created = int(time.time())
        self._reader = ThreadPoolExecutor(1, "unmask-prepare")  # so that tokenizing stops nobody
        self._deadline: float | None = None

    def start(self) -> None:
        """Begin to decode."""
        self.engine.start()

    def stop(self) -> None:
        """End for good; whoever still waits was told before, or never will be."""
        self.engine.stop()
        self._reader.shutdown(cancel_futures=True)

    # Going down

    def close(self, grace: float) -> None:
        """Take nothing new, and give what is here so many seconds."""
        self.engine.close()
        self._deadline = time.monotonic() + grace

    def closed(self) -> bool:
        """Whether nothing is left; past the deadline, what is left is told so first."""
        if self._deadline is None:
            return False
        if time.monotonic() > self._deadline:
            self.engine.abort(self._down())
        return self.engine.idle

    def _down(self) -> ApiError:
        return ApiError(503, DOWN, code="closing", retry_after=5)

    # Requests

    async def prepare(self, body: ChatRequest | CompletionRequest) -> Prepared:
        """Read a request, beside the event loop; refuses at once where there is no place."""
        self._check_open()
        if self.engine.room < 1:
            raise self._full()
        if body.trace and self.begin_trace is None:
            raise ApiError(400, "this server keeps no traces", param="trace")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reader, prepare, self.served, body)

    def submit(self, prepared: Prepared, frames: bool, trace: bool) -> list[Choice]:
        """Queue all choices of a request, or refuse them."""
        begin = self.begin_trace if trace else None
        choices = choices_of(self.served.shape, prepared, frames, begin, self.traces)
        try:
            self.engine.submit([choice.task for choice in choices])
        except (Full, Closing) as error:
            self._give_up_traces(choices)
            if isinstance(error, Full):
                raise self._full() from None
            self._check_open()
            raise
        return choices

    def _check_open(self) -> None:
        if self.engine.broken:
            raise ApiError(503, "the engine has failed; start the server anew", code="failed")
        if self.engine.closing:
            raise self._down()

    def cancel(self, choices: list[Choice]) -> None:
        """Free the rows of a request that nobody waits for."""
        self.engine.cancel([choice.task for choice in choices])
        self._give_up_traces(choices)

    def _give_up_traces(self, choices: list[Choice]) -> None:
        """Let go of traces that will never be whole."""
        for choice in choices:
            if choice.sheet is not None and not choice.sheet.whole:
                self.traces.close(choice.sheet)

    def _full(self) -> ApiError:
        seconds = self.engine.retry_after()
        message = f"all places are taken; try again in {seconds} s"
        return ApiError(429, message, code="queue_full", retry_after=seconds)

    def health(self) -> dict[str, Any]:
        """How it goes."""
        engine = self.engine
        status = "failed" if engine.broken else "closing" if engine.closing else "ok"
        return {
            "status": status,
            "model": self.served.name,
            "rows": engine.rows,
            "waiting": engine.waiting,
            "batch_size": engine.batch_size,
            "queue_size": engine.queue_size,
        }


async def endings_of(choices: list[Choice]) -> list[Ending]:
    """Wait for all choices of a request; the first that fails fails it."""
    endings: dict[int, Ending] = {}
    while len(endings) < len(choices):
        for index, news in (await choices[0].mailbox.take()).items():
            assert isinstance(news, Outcome), "frames were not asked for"
            endings[index] = choices[index].ending(news)
    return [endings[index] for index in sorted(endings)]


async def unless(leaving: Awaitable[None], work: Awaitable[T]) -> T | None:
    """What the work gives, or None if the other thing happens first."""
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(leaving)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return tasks[0].result() if tasks[0].done() else None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
