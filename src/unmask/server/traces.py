"""Traces of requests that set `trace`: written while they decode, kept while there is room."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from io import BytesIO
from threading import RLock
from typing import BinaryIO, NamedTuple

from unmask.decoding.request import Request
from unmask.decoding.results import Result, Step
from unmask.trace import Tracer

MEDIA_TYPE, SUFFIX = "application/gzip", ".trace"
POLL = 0.05  # seconds between two reads of a growing trace

BeginTrace = Callable[[BinaryIO, Request], Tracer]
TraceElsewhere = Callable[[str], Awaitable[AsyncIterator[bytes] | None]]  # of another replica


async def nowhere(name: str) -> None:
    """Find no trace: a single server has no replicas."""


class TooLong(Exception):  # noqa: N818
    """A trace is larger than one trace may be."""


class TracePiece(NamedTuple):
    """The bytes of a trace from one place to its present end."""

    edition: int
    data: bytes
    over: bool  # no bytes follow


class TraceBuffer(BytesIO):
    """A trace in memory, of at most `most` bytes, which can be read while it grows."""

    def __init__(self, name: str, most: int) -> None:
        super().__init__()
        self.name, self.most = name, most
        self.size = 0  # bytes; another thread may not ask the buffer itself while it is written
        self.edition = 0  # goes up when a row starts again and its trace is written again
        self.whole = self.gone = False

    def write(self, data: bytes) -> int:  # type: ignore[override]
        if self.tell() + len(data) > self.most:
            raise TooLong
        written = super().write(data)
        self.size += written
        return written

    def begin_again(self) -> None:
        """Discard the bytes; readers of the old trace end early."""
        self.edition += 1
        self.size = 0
        self.seek(0)
        self.truncate(0)

    def piece(self, place: int) -> TracePiece:
        """The bytes from a place on."""
        over, edition = self.whole or self.gone, self.edition  # read before the bytes
        return TracePiece(edition, self.getvalue()[place:], over)

    def follow(self) -> AsyncIterator[bytes]:
        """All bytes as they are written, until the row ends."""

        async def look(place: int) -> TracePiece:
            return self.piece(place)

        return followed(look, POLL)


async def followed(
    look: Callable[[int], Awaitable[TracePiece | None]], every: float
) -> AsyncIterator[bytes]:
    """A trace as it grows, read piece by piece; it ends early if its row starts again."""
    piece, place = await look(0), 0
    edition = None if piece is None else piece.edition
    while piece is not None and piece.edition == edition:
        if piece.data:
            yield piece.data
            place += len(piece.data)
        if piece.over:
            return
        await asyncio.sleep(every)
        piece = await look(place)


class TraceStore:
    """The latest traces by name; makes room by dropping the least recently read finished ones."""

    def __init__(self, most_bytes: int = 2**26, most_bytes_each: int = 2**24) -> None:
        self.most_bytes, self.most_bytes_each = most_bytes, most_bytes_each
        self._growing: dict[str, TraceBuffer] = {}
        self._whole: OrderedDict[str, TraceBuffer] = OrderedDict()
        self._whole_bytes = 0
        self._lock = RLock()

    def open(self) -> TraceBuffer:
        """An empty trace with a new name."""
        buffer = TraceBuffer(secrets.token_urlsafe(16), self.most_bytes_each)
        with self._lock:
            self._growing[buffer.name] = buffer
        return buffer

    @property
    def size(self) -> int:
        """Bytes of all kept traces; the growing ones are few."""
        with self._lock:
            return self._whole_bytes + sum(each.size for each in self._growing.values())

    def close(self, buffer: TraceBuffer) -> None:
        """Keep a whole trace and make room for it; drop one that is not whole."""
        with self._lock:
            self._growing.pop(buffer.name, None)
            if not buffer.whole:
                buffer.gone = True
                buffer.begin_again()
                return
            self._whole[buffer.name] = buffer
            self._whole_bytes += buffer.size
            spare = self.size - self.most_bytes
            while spare > 0 and self._whole:
                _, oldest = self._whole.popitem(last=False)
                self._whole_bytes -= oldest.size
                spare -= oldest.size

    def get(self, name: str) -> TraceBuffer | None:
        """The trace of that name, if it is still kept."""
        with self._lock:
            if name in self._whole:
                self._whole.move_to_end(name)
                return self._whole[name]
            return self._growing.get(name)


class RowTrace:
    """Writes the trace of one row into its buffer."""

    def __init__(
        self, begin: BeginTrace, request: Request, buffer: TraceBuffer, store: TraceStore
    ) -> None:
        self._buffer, self._store = buffer, store
        self._too_long = False
        if buffer.tell():
            buffer.begin_again()
        self._tracer = begin(buffer, request)

    def see(self, step: Step, row: int) -> None:
        self._write(lambda: self._tracer.see(step, row))

    def close(self, result: Result | None) -> None:
        tracer = self._tracer
        self._write(lambda: tracer.close() if result is None else tracer.finish(result))
        self._buffer.whole = not self._too_long
        self._store.close(self._buffer)

    def _write(self, act: Callable[[], object]) -> None:
        try:
            if not self._too_long:
                act()
        except TooLong:  # the row goes on without its trace
            self._too_long = True
            self._buffer.begin_again()
