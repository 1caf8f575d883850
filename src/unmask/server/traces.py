"""Traces of requests that asked for one: written as they decode, kept while there is room."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from io import BytesIO
from threading import Lock
from typing import BinaryIO, NamedTuple

from unmask.decoding.request import Request
from unmask.decoding.results import Result, Step
from unmask.trace import Tracer
from unmask.trace.recording.record import text_of

MEDIA_TYPE, SUFFIX = "application/gzip", ".trace"
POLL = 0.05  # seconds between two looks at a trace that is being written

Begin = Callable[[BinaryIO, Request], Tracer]
Elsewhere = Callable[[str], Awaitable[AsyncIterator[bytes] | None]]  # a trace that is not here


async def nowhere(name: str) -> None:
    """One server alone: what it does not have is lost."""


class TooLong(Exception):  # noqa: N818
    """A trace that outgrows its share."""


class Piece(NamedTuple):
    """A part of a trace, from a place on."""

    edition: int
    data: bytes
    over: bool  # nothing comes after it


class Sheet(BytesIO):
    """A trace in memory that does not grow beyond its size, and can be read while it grows."""

    def __init__(self, name: str, most: int) -> None:
        super().__init__()
        self.name, self.most = name, most
        self.edition = 0  # a row that begins again writes its trace anew
        self.whole = self.gone = False

    def write(self, data: bytes) -> int:  # type: ignore[override]
        if self.tell() + len(data) > self.most:
            raise TooLong
        return super().write(data)

    def begin_again(self) -> None:
        """Forget what was written; who was reading it is left with a part."""
        self.edition += 1
        self.seek(0)
        self.truncate(0)

    def give_up(self) -> None:
        """Nothing more will be written, and nothing is worth keeping."""
        if not self.whole:
            self.gone = True
            self.begin_again()

    def piece(self, place: int) -> Piece:
        """What is written from a place on."""
        over, edition = self.whole or self.gone, self.edition  # first: nothing may follow the last
        return Piece(edition, self.getvalue()[place:], over)

    def follow(self) -> AsyncIterator[bytes]:
        """What is written and what will be, until the run is over."""

        async def look(place: int) -> Piece:
            return self.piece(place)

        return followed(look, POLL)


async def followed(
    look: Callable[[int], Awaitable[Piece | None]], every: float
) -> AsyncIterator[bytes]:
    """A trace as it grows; who writes it may be elsewhere. It ends early where it begins again."""
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
    """The latest traces by their name; of finished ones, those unread for longest go first."""

    def __init__(self, most_bytes: int = 2**26, most_bytes_each: int = 2**24) -> None:
        self.most_bytes, self.most_bytes_each = most_bytes, most_bytes_each
        self._kept: OrderedDict[str, Sheet] = OrderedDict()
        self._lock = Lock()

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        with self._lock:
            return self._size()

    def _size(self) -> int:
        return sum(len(sheet.getbuffer()) for sheet in self._kept.values())

    def open(self) -> Sheet:
        """A sheet for one more trace, known by its name at once."""
        sheet = Sheet(secrets.token_urlsafe(16), self.most_bytes_each)
        with self._lock:
            self._kept[sheet.name] = sheet
        return sheet

    def close(self, sheet: Sheet) -> None:
        """A trace is whole, or it was given up; what there is no room for goes."""
        with self._lock:
            if not sheet.whole:
                sheet.give_up()
                self._kept.pop(sheet.name, None)
                return
            size = self._size()
            for old in [sheet for sheet in self._kept.values() if sheet.whole]:
                if size <= self.most_bytes:
                    return
                size -= len(old.getbuffer())
                del self._kept[old.name]

    def get(self, name: str) -> Sheet | None:
        """A trace that is still kept."""
        with self._lock:
            sheet = self._kept.get(name)
            if sheet is not None:
                self._kept.move_to_end(name)
            return sheet


class Tracing:
    """The listener of one row: writes its trace."""

    def __init__(self, begin: Begin, request: Request, sheet: Sheet, store: TraceStore) -> None:
        self._sheet, self._store = sheet, store
        self._too_long = False
        if sheet.tell():
            sheet.begin_again()
        self._tracer = begin(sheet, request)

    def see(self, step: Step, row: int) -> None:
        self._write(lambda: self._tracer.see(step, row))

    def close(self, result: Result | None) -> None:
        self._write(lambda: self._finish(result))
        self._sheet.whole = not self._too_long
        self._store.close(self._sheet)

    def _finish(self, result: Result | None) -> None:
        tracer = self._tracer
        text = None if result is None else text_of(result, tracer.request, tracer.tokenizer)
        tracer.close(result, text)

    def _write(self, act: Callable[[], object]) -> None:
        try:
            if not self._too_long:
                act()
        except TooLong:  # the answer goes on without it
            self._too_long = True
            self._sheet.begin_again()
