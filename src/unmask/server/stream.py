"""Server-sent events: the settled text as it grows, or the whole canvas after each step."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from unmask.server.choices import Choice, Ending
from unmask.server.engine import LOG, RowOutcome
from unmask.server.errors import ApiError, failed_row
from unmask.server.replies import Reply
from unmask.server.snapshots import Snapshots
from unmask.text.settled import RowCanvas

DONE = b"data: [DONE]\n\n"
GONE = "unmask.gone"  # set in a request's scope when its client leaves early
T = TypeVar("T")


def event(content: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(content, ensure_ascii=False).encode() + b"\n\n"


class TextDeltas:
    """The chunks of one choice's text; joined, they are the text of the whole response."""

    def __init__(self, choice: Choice, reply: Reply) -> None:
        self.choice, self.reply = choice, reply
        self._sent = ""

    def of_canvas(self, canvas: RowCanvas) -> Iterator[dict[str, Any]]:
        yield from self._grown(self.choice.reader.settled(canvas).text)

    def of_ending(self, ending: Ending) -> Iterator[dict[str, Any]]:
        assert ending.text.startswith(self._sent), "text was sent that is not in the answer"
        yield from self._grown(ending.text)
        yield self.reply.chunk(self.choice.index, None, ending)

    def _grown(self, text: str) -> Iterator[dict[str, Any]]:
        """The text that was not sent; a row that starts again first repeats what was sent."""
        if len(text) > len(self._sent) and text.startswith(self._sent):
            yield self.reply.chunk(self.choice.index, text[len(self._sent) :])
            self._sent = text


class ToolDeltas:
    """The message of a choice that may call tools, whole: calls are read from a whole text."""

    def __init__(self, choice: Choice, reply: Reply) -> None:
        self.choice, self.reply = choice, reply

    def of_canvas(self, canvas: RowCanvas) -> Iterator[dict[str, Any]]:
        yield from ()

    def of_ending(self, ending: Ending) -> Iterator[dict[str, Any]]:
        message = self.reply.message(ending)
        calls = [
            {"index": place, **call} for place, call in enumerate(message.get("tool_calls", ()))
        ]
        if message["content"]:
            yield self.reply.chunk(self.choice.index, message["content"])
        if calls:
            chunk = self.reply.chunk(self.choice.index, None)
            chunk["choices"][0]["delta"] = {"tool_calls": calls}
            yield chunk
        last = self.reply.chunk(self.choice.index, None, ending)
        last["choices"][0]["finish_reason"] = "tool_calls" if calls else ending.reason
        yield last


class CanvasChunks:
    """A chunk with the canvas of one choice after each step; each replaces the one before."""

    def __init__(self, choice: Choice, reply: Reply) -> None:
        self.choice, self.reply = choice, reply
        self._snapshots = Snapshots(choice.reader, choice.request.canvas.tolist())

    def of_canvas(self, canvas: RowCanvas) -> Iterator[dict[str, Any]]:
        snapshots, count = self._snapshots, {"step": canvas.forward, "forward": canvas.forward}
        yield self.reply.chunk(
            self.choice.index,
            snapshots.text(canvas),
            diffusion_meta=_meta(snapshots.progress(canvas)),
            unmask={**count, "cells": snapshots.cells(canvas)},
        )

    def of_ending(self, ending: Ending) -> Iterator[dict[str, Any]]:
        yield self.reply.chunk(self.choice.index, ending.text, ending, diffusion_meta=_meta(1.0))


def _meta(progress: float) -> dict[str, Any]:
    return {"diffusion_content": True, "diffusion_progress": progress}


async def events(
    choices: list[Choice],
    reply: Reply,
    diffusing: bool,
    usage: bool,
    first_text: Callable[[], None],
) -> AsyncIterator[bytes]:
    """All events of a streamed response; calls `first_text` before the first text."""
    text_form = TextDeltas if reply.tools is None else ToolDeltas
    form = CanvasChunks if diffusing else text_form
    forms = [form(choice, reply) for choice in choices]
    endings: dict[int, Ending] = {}
    rest, started = {"usage": None} if usage else {}, False
    for choice in choices:
        trace = None if choice.trace_buffer is None else choice.trace_buffer.name
        yield event({**reply.opening(choice.index, trace), **rest})
    try:
        while len(endings) < len(choices):
            for index, news in (await choices[0].mailbox.take()).items():
                if isinstance(news, RowOutcome):
                    endings[index] = choices[index].ending(news)
                    chunks = forms[index].of_ending(endings[index])
                else:
                    chunks = forms[index].of_canvas(news)
                for chunk in chunks:
                    if not started:
                        first_text()
                        started = True
                    yield event({**chunk, **rest})
    except Exception as error:  # the client gets the error as the last event
        if not isinstance(error, ApiError):
            LOG.error("a stream failed", exc_info=error)
        yield event(failed_row(error).body)
        return
    if usage:
        yield event(reply.closing([endings[index] for index in sorted(endings)]))
    yield DONE


class EventStream(StreamingResponse):
    """Sends events as they come; calls `close` at the end, or when the client leaves."""

    media_type = "text/event-stream"

    def __init__(self, stream: AsyncIterator[bytes], close: Callable[[], None]) -> None:
        super().__init__(stream, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await unless_gone(scope, receive, self.stream_response(send))
        finally:
            self._close()


async def unless_gone(scope: Scope, receive: Receive, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`; None, with GONE set in the scope, if the client leaves first."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        scope[GONE] = True
        return None
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    """Wait until the client leaves; its body was read before."""
    while (await receive())["type"] != "http.disconnect":
        pass
