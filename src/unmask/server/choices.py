"""The choices of one request, from the engine's thread to the event loop that sends them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from threading import Lock

from unmask.decoding.request import Request
from unmask.decoding.results import Result, Step
from unmask.models.describe import Description
from unmask.server.errors import failed_row
from unmask.server.prepare import Prepared
from unmask.server.reader import Frame, Reader
from unmask.server.tasks import Listener, Outcome, Task
from unmask.server.traces import Begin, Sheet, TraceStore, Tracing
from unmask.text.answers import Answer
from unmask.text.clock import Seconds

News = Frame | Outcome


class Mailbox:
    """The latest of every choice. A reader that is slow misses frames; nothing piles up."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._lock = Lock()
        self._news: dict[int, News] = {}

    def put(self, choice: int, news: News) -> None:
        """From any thread."""
        with self._lock:
            first = not self._news
            self._news[choice] = news
        if first and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ready.set)

    async def take(self) -> dict[int, News]:
        """Wait for news of any choice."""
        await self._ready.wait()
        self._ready.clear()
        with self._lock:
            news, self._news = self._news, {}
        return news


@dataclass(frozen=True)
class Ending:
    """A finished choice."""

    text: str
    reason: str  # as OpenAI's finish_reason
    tokens: int  # of the text
    written: int  # tokens that were committed at all
    nfe: int
    nfe_eos: int
    trace: str | None = None

    def record(self) -> dict[str, object]:
        """The cost of one choice, for its response."""
        names = ("nfe", "nfe_eos", "tokens", "written", "trace")
        return {name: getattr(self, name) for name in names}


@dataclass
class Choice:
    """One row and its text."""

    index: int
    request: Request
    reader: Reader
    mailbox: Mailbox
    frames: bool  # whether the steps are wanted, not only the end
    sheet: Sheet | None = None  # what its trace is written on
    stopped: Frame | None = None  # where a stop string was found
    task: Task = field(init=False)

    def listeners(self, begin: Begin | None, store: TraceStore) -> list[Listener]:
        """Everybody who follows the row; made when it begins."""
        found: list[Listener] = []
        if begin is not None and self.sheet is not None:
            found.append(Tracing(begin, self.request, self.sheet, store))
        if self.reader.stops:
            found.append(Until(self))
        if self.frames:
            found.append(Forward(self))
        return found

    def ending(self, outcome: Outcome) -> Ending:
        """The finished text and its cost; raises what the row failed with."""
        if outcome.error is not None:
            raise failed_row(outcome.error) from outcome.error
        trace = self.sheet.name if self.sheet is not None and self.sheet.whole else None
        if outcome.result is None:
            assert self.stopped is not None, "a row was let go that nobody had enough of"
            return self._cut(self.stopped, trace)
        return self._whole(outcome.result, trace)

    def _whole(self, result: Result, trace: str | None) -> Ending:
        infill = self.reader.infill
        answer = Answer.of(result, self.reader.tokenizer, infill, Seconds())
        reading = self.reader.read(answer.ids, ended=True)
        reason = "length" if answer.cut_off and not reading.stopped else "stop"
        tokens = reading.tokens if reading.stopped and not infill else answer.tokens
        return Ending(
            reading.text, reason, tokens, answer.written, answer.nfe, answer.nfe_eos, trace
        )

    def _cut(self, frame: Frame, trace: str | None) -> Ending:
        reading, mask = self.reader.final(frame), self.reader.spec.mask_id
        masks = int((self.request.canvas == mask).sum())
        written = masks - frame.ids.count(mask)
        tokens = written if self.reader.infill else reading.tokens
        return Ending(reading.text, "stop", tokens, written, frame.forward, frame.forward, trace)


class Forward:
    """A listener that hands every frame on."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice

    def see(self, step: Step, row: int) -> None:
        self.choice.mailbox.put(self.choice.index, Frame.of(step, row))

    def close(self, result: Result | None) -> None:
        """The outcome comes by another way."""


class Until:
    """A listener that has enough once a stop string is in the final text."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice

    def see(self, step: Step, row: int) -> bool:
        frame = Frame.of(step, row)
        stopped = self.choice.reader.final(frame).stopped
        if stopped:
            self.choice.stopped = frame
        return stopped

    def close(self, result: Result | None) -> None:
        """Nothing is held."""


def choices_of(
    shape: Description, prepared: Prepared, frames: bool, begin: Begin | None, kept: TraceStore
) -> list[Choice]:
    """A choice for every request, with a common mailbox; nothing runs yet.

    `begin` opens a trace of each; without it there are none.
    """
    mailbox, choices = Mailbox(), []
    for index, request in enumerate(prepared.requests):
        reader = Reader(shape.tokenizer, shape.spec, request, prepared.stops)
        sheet = None if begin is None else kept.open()
        choice = Choice(index, request, reader, mailbox, frames, sheet)
        choice.task = _task(choice, begin, kept)
        choices.append(choice)
    return choices


def _task(choice: Choice, begin: Begin | None, kept: TraceStore) -> Task:
    return Task(
        choice.request,
        lambda: choice.listeners(begin, kept),
        lambda outcome: choice.mailbox.put(choice.index, outcome),
    )
