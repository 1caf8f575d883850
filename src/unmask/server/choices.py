"""The choices of one request: rows for the engine, and their texts for the response."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Lock

from unmask.decoding.request import Request
from unmask.decoding.results import Result, Step
from unmask.server.engine import RowOutcome
from unmask.server.errors import failed_row
from unmask.server.fairness import Account
from unmask.server.prepare import PreparedRequest
from unmask.server.traces import BeginTrace, RowTrace, TraceBuffer, TraceStore
from unmask.text.answers import Answer
from unmask.text.clock import Seconds
from unmask.text.logprobs import CommitLogprobs, TokenLogprob
from unmask.text.session import Session
from unmask.text.settled import RowCanvas, TextReader

News = RowCanvas | RowOutcome


class Mailbox:
    """The latest canvas or outcome of every choice.

    A new canvas replaces one that was not taken, so a slow reader misses steps and memory does not
    grow. After the first outcome of a choice, nothing more is put there.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._lock = Lock()
        self._news: dict[int, News] = {}
        self._ended: set[int] = set()

    def put(self, choice: int, news: News) -> None:
        """Replace the news of a choice; called from any thread."""
        with self._lock:
            if choice in self._ended:
                return
            if isinstance(news, RowOutcome):
                self._ended.add(choice)
            was_empty = not self._news
            self._news[choice] = news
        if was_empty and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ready.set)

    async def take(self) -> dict[int, News]:
        """Wait for news, then take the news of all choices."""
        await self._ready.wait()
        self._ready.clear()
        with self._lock:
            news, self._news = self._news, {}
        return news


@dataclass(frozen=True)
class Ending:
    """A finished choice."""

    text: str
    reason: str  # OpenAI's finish_reason
    tokens: int  # of the text
    written: int  # all committed tokens
    nfe: int
    nfe_eos: int
    trace: str | None = None
    logprobs: list[TokenLogprob | None] | None = None  # of the text's tokens, if asked for
    ids: list[int] | None = None  # the text's tokens, if their step map is asked for
    step_map: list[int] | None = None

    def record(self) -> dict[str, object]:
        """The cost of one choice, for its response."""
        names = ("nfe", "nfe_eos", "tokens", "written", "trace")
        more = {} if self.step_map is None else {"ids": self.ids, "step_map": self.step_map}
        return {**{name: getattr(self, name) for name in names}, **more}


@dataclass(eq=False)
class Choice:
    """One row of a request (an engine's `RowTask`) and its text."""

    index: int
    request: Request
    reader: TextReader
    mailbox: Mailbox
    streamed: bool  # every step goes to the mailbox, not only the outcome
    account: Account
    trace_buffer: TraceBuffer | None = None
    begin_trace: Callable[[], RowTrace] | None = None
    logprobs: CommitLogprobs | None = None
    step_map: bool = False  # whether the ending has one
    apart: bool = False
    started: float = 0.0
    _trace: RowTrace | None = None
    _stopped: RowCanvas | None = None  # the first canvas with a stop string in its settled text

    def begin(self) -> None:
        """Start the trace, if the request asked for one."""
        self._trace = None if self.begin_trace is None else self.begin_trace()
        if self.logprobs is not None:
            self.logprobs.at.clear()  # a row may start again

    def see(self, step: Step, row: int) -> bool:
        """Record and send a step; True once the settled text holds a stop string."""
        if self._trace is not None:
            self._trace.see(step, row)
        if self.logprobs is not None:
            self.logprobs.see(step, row)
        if not self.reader.stops and not self.streamed:
            return False
        canvas = RowCanvas.of(step, row)
        stopped = bool(self.reader.stops) and self.reader.settled(canvas).stopped
        if stopped:
            self._stopped = canvas
        if self.streamed:
            self.mailbox.put(self.index, canvas)
        return stopped

    def close(self, result: Result | None) -> None:
        """Finish the trace."""
        if self._trace is not None:
            self._trace.close(result)

    def end(self, outcome: RowOutcome) -> None:
        """Send the outcome; called from any thread."""
        self.mailbox.put(self.index, outcome)

    def ending(self, outcome: RowOutcome) -> Ending:
        """The finished text and its cost; raises the row's error."""
        if outcome.error is not None:
            raise failed_row(outcome.error) from outcome.error
        buffer = self.trace_buffer
        trace = buffer.name if buffer is not None and buffer.whole else None
        if outcome.result is None:
            assert self._stopped is not None, "a row without a result has met a stop string"
            return self._cut(self._stopped, trace)
        return self._whole(outcome.result, trace)

    def _whole(self, result: Result, trace: str | None) -> Ending:
        infill = self.reader.infill
        answer = Answer.of(result, self.reader.tokenizer, infill, Seconds())
        read = self.reader.read(answer.ids, ended=True)
        reason = "length" if answer.cut_off and not read.stopped else "stop"
        tokens = read.tokens if read.stopped and not infill else answer.tokens
        costs = answer.written, answer.nfe, answer.nfe_eos
        kept, steps = answer.ids if infill else answer.ids[:tokens], answer.step_map
        return Ending(
            read.text, reason, tokens, *costs, trace, self._logprobs(tokens),
            *((kept, steps[: len(kept)]) if self.step_map else (None, None)),
        )  # fmt: skip

    def _logprobs(self, tokens: int) -> list[TokenLogprob | None] | None:
        if self.logprobs is None:
            return None
        return self.logprobs.of(self.request, self.reader.spec.mask_id, tokens)

    def _cut(self, canvas: RowCanvas, trace: str | None) -> Ending:
        read, mask = self.reader.settled(canvas), self.reader.spec.mask_id
        masks = len(canvas.ids) - self.reader.prompt_tokens  # of a canvas that may have grown
        written = masks - canvas.ids.count(mask)
        tokens = written if self.reader.infill else read.tokens
        costs = written, canvas.forward, canvas.forward
        return Ending(read.text, "stop", tokens, *costs, trace, self._logprobs(tokens))


def choices_of(
    session: Session,
    prepared: PreparedRequest,
    streamed: bool,
    account: Account,
    begin_trace: BeginTrace | None,
    traces: TraceStore,
) -> list[Choice]:
    """A choice for every row of a request, with one mailbox; nothing runs yet.

    `begin_trace` opens the trace of each row; None: the rows have no traces.
    """
    mailbox, choices = Mailbox(), []
    for index, request in enumerate(prepared.requests):
        reader = TextReader(session.tokenizer, session.spec, request, prepared.stops)
        choice = Choice(index, request, reader, mailbox, streamed, account)
        choice.step_map = prepared.step_map
        if prepared.logprobs is not None:
            choice.logprobs = CommitLogprobs(prepared.logprobs)
        if begin_trace is not None:
            choice.trace_buffer = buffer = traces.open()
            choice.begin_trace = partial(RowTrace, begin_trace, request, buffer, traces)
        choices.append(choice)
    return choices


async def endings_of(choices: list[Choice]) -> list[Ending]:
    """Wait for all choices of a request that is not streamed; the first error is raised."""
    endings: dict[int, Ending] = {}
    while len(endings) < len(choices):
        for index, news in (await choices[0].mailbox.take()).items():
            assert isinstance(news, RowOutcome), "only streamed choices send their steps"
            endings[index] = choices[index].ending(news)
    return [endings[index] for index in sorted(endings)]
