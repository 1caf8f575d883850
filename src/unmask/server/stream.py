"""Server-sent events: the final text as it grows, or the whole canvas at each step."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from unmask.server.choices import Choice, Ending
from unmask.server.engine import LOG
from unmask.server.errors import ApiError, failed_row
from unmask.server.reader import Frame
from unmask.server.replies import Reply
from unmask.server.snapshots import Snapshots
from unmask.server.tasks import Outcome

DONE = b"data: [DONE]\n\n"
GONE = "unmask.gone"  # in a request's scope, once its client has left


def event(content: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(content, ensure_ascii=False).encode() + b"\n\n"


class Deltas:
    """The pieces of one choice's text; joined, they are the text of the whole response."""

    def __init__(self, choice: Choice, reply: Reply) -> None:
        self.choice, self.reply = choice, reply
        self._sent = ""

    def of_frame(self, frame: Frame) -> Iterator[dict[str, Any]]:
        yield from self._grown(self.choice.reader.final(frame).text)

    def of_ending(self, ending: Ending) -> Iterator[dict[str, Any]]:
        assert ending.text.startswith(self._sent), "text was sent that is not in the answer"
        yield from self._grown(ending.text)
        yield self.reply.chunk(self.choice.index, None, ending)

    def _grown(self, text: str) -> Iterator[dict[str, Any]]:
        """What is new; a row that began again says first what was sent already."""
        if len(text) > len(self._sent) and text.startswith(self._sent):
            yield self.reply.chunk(self.choice.index, text[len(self._sent) :])
            self._sent = text


class Canvases:
    """The canvas of one choice after each step; every content replaces the one before."""

    def __init__(self, choice: Choice, reply: Reply) -> None:
        self.choice, self.reply = choice, reply
        self._snapshots = Snapshots(choice.reader, choice.request.canvas.tolist())

    def of_frame(self, frame: Frame) -> Iterator[dict[str, Any]]:
        shots, done = self._snapshots, {"step": frame.forward, "forward": frame.forward}
        yield self.reply.chunk(
            self.choice.index,
            shots.text(frame),
            diffusion_meta=_meta(shots.progress(frame)),
            unmask={**done, "cells": shots.cells(frame)},
        )

    def of_ending(self, ending: Ending) -> Iterator[dict[str, Any]]:
        yield self.reply.chunk(self.choice.index, ending.text, ending, diffusion_meta=_meta(1.0))


def _meta(progress: float) -> dict[str, Any]:
    return {"diffusion_content": True, "diffusion_progress": progress}


async def events(
    choices: list[Choice], reply: Reply, diffusing: bool, usage: bool, first: Callable[[], None]
) -> AsyncIterator[bytes]:
    """Everything that is sent; `first` is called with the first text."""
    form = Canvases if diffusing else Deltas
    forms = [form(choice, reply) for choice in choices]
    endings: dict[int, Ending] = {}
    rest = {"usage": None} if usage else {}
    for choice in choices:
        trace = None if choice.sheet is None else choice.sheet.name
        yield event({**reply.opening(choice.index, trace), **rest})
    try:
        while len(endings) < len(choices):
            for index, news in (await choices[0].mailbox.take()).items():
                if isinstance(news, Outcome):
                    endings[index] = choices[index].ending(news)
                    chunks = forms[index].of_ending(endings[index])
                else:
                    chunks = forms[index].of_frame(news)
                for chunk in chunks:
                    first()
                    yield event({**chunk, **rest})
    except Exception as error:  # a connection is never cut without a word
        if not isinstance(error, ApiError):
            LOG.error("a stream has failed", exc_info=error)
        yield event(failed_row(error).body)
        return
    if usage:
        yield event(reply.closing([endings[index] for index in sorted(endings)]))
    yield DONE


class EventStream(Response):
    """Sends events as they come. When the client leaves, or at the end, `close` is called."""

    media_type = "text/event-stream"

    def __init__(self, stream: AsyncIterator[bytes], close: Callable[[], None]) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._stream, self._close = stream, close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(send))
        leaving = asyncio.ensure_future(gone(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
            else:
                scope[GONE] = True
        finally:
            self._close()
            sending.cancel()
            leaving.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        head = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(head)
        async for data in self._stream:
            await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def gone(receive: Receive) -> None:
    """Wait until the client has left; its body was read before."""
    while (await receive())["type"] != "http.disconnect":
        pass
