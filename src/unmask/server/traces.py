"""Traces of requests that asked for one: written as they decode, kept while there is room."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from threading import Lock
from typing import BinaryIO

from unmask.request import Request
from unmask.results import Result, Step
from unmask.server.tasks import Listener


@dataclass(frozen=True)
class TraceFormat:
    """What writes traces: `open` gives the listener that writes one row's into a stream.

    The listener's `close` writes whatever is still to be written; the stream is not closed.
    """

    open: Callable[[BinaryIO, Request], Listener]
    media_type: str
    suffix: str  # of the file that is downloaded


class TooLong(Exception):  # noqa: N818
    """A trace that outgrows its share."""


class Sheet(BytesIO):
    """A file in memory that does not grow beyond its size."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def write(self, data: bytes) -> int:  # type: ignore[override]
        if self.tell() + len(data) > self.most:
            raise TooLong
        return super().write(data)


class TraceStore:
    """The latest traces by their id; those nobody has read for longest go first."""

    def __init__(self, most_bytes: int = 2**26, most_bytes_each: int = 2**24) -> None:
        self.most_bytes, self.most_bytes_each = most_bytes, most_bytes_each
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return self._size

    def put(self, name: str, data: bytes) -> None:
        """Keep one more, and as many of the others as there is room for."""
        with self._lock:
            self._kept[name] = data
            self._size += len(data)
            while self._size > self.most_bytes:
                _, old = self._kept.popitem(last=False)
                self._size -= len(old)

    def get(self, name: str) -> bytes | None:
        """A trace that is still kept."""
        with self._lock:
            data = self._kept.get(name)
            if data is not None:
                self._kept.move_to_end(name)
            return data


class Tracing:
    """The listener of one row: its trace goes into the store when the row is done."""

    def __init__(self, form: TraceFormat, request: Request, store: TraceStore) -> None:
        self.name: str | None = None  # once it can be downloaded
        self._sheet, self._store = Sheet(store.most_bytes_each), store
        self._writer = form.open(self._sheet, request)
        self._too_long = False

    def see(self, step: Step, row: int) -> None:
        self._write(lambda: self._writer.see(step, row))

    def close(self, result: Result | None) -> None:
        self._write(lambda: self._writer.close(result))
        if not self._too_long:
            self.name = secrets.token_urlsafe(16)
            self._store.put(self.name, self._sheet.getvalue())

    def _write(self, act: Callable[[], object]) -> None:
        try:
            if not self._too_long:
                act()
        except TooLong:  # the answer goes on without it
            self._too_long = True
            self._sheet.truncate(0)
