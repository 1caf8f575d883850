"""Connections with limits: their number, the size of headers, and the time for each part."""

from __future__ import annotations

import asyncio
from collections import Counter
from time import monotonic
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from unmask.server.errors import ApiError

MOST = 800  # connections; a process may usually have 1024 files
MOST_EACH = MOST // 2  # of one address
MOST_HEADER = 2**15  # bytes of all headers of a request
HEADER_SECONDS = 10.0  # for the headers of a request to arrive
STALLED_SECONDS = 60.0  # for a client to take what was sent


class LimitedConnection(H11Protocol):
    """One connection. A silent one, and one that does not read its response, is closed.

    When there are too many connections, a new one takes the place of one without a whole request:
    of one that never began a request if there is such a one, and of the one that waited longest.
    Without such a connection the new one is refused with 503.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.last_used = monotonic()
        self._timers: dict[float, asyncio.TimerHandle] = {}  # by their seconds

    @property
    def busy(self) -> bool:
        """Whether a request is being answered; one whose body is still awaited is not."""
        answering = self.cycle is not None and not self.cycle.response_complete
        return answering and self.conn.their_state is not h11.SEND_BODY

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._limit(HEADER_SECONDS)
        others = [each for each in self.connections if isinstance(each, LimitedConnection)]
        sizes = Counter(each.address for each in others)
        if sizes[self.address] > MOST_EACH:
            self._make_room([each for each in others if each.address == self.address])
        elif len(others) > MOST:
            greatest = max(sizes, key=lambda address: sizes[address])
            self._make_room([each for each in others if each.address == greatest])

    def _make_room(self, connections: list[LimitedConnection]) -> None:
        idle = [each for each in connections if each is not self and not each.busy]
        if idle:
            oldest = min(idle, key=lambda each: (each.cycle is not None, each.last_used))
            oldest.transport.abort()
            self.connections.discard(oldest)
            return
        body = (
            ApiError(503, "too many connections; try again later", code="too_many_connections")
            .response()
            .body
        )
        head = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
        self.transport.write(head.encode() + bytes(body))
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        self.last_used = monotonic()
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._unlimit(HEADER_SECONDS)
        elif HEADER_SECONDS not in self._timers:  # the beginning of the next request's headers
            self._limit(HEADER_SECONDS)

    def on_response_complete(self) -> None:
        self.last_used = monotonic()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._limit(STALLED_SECONDS)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unlimit(STALLED_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unlimit(HEADER_SECONDS)
        self._unlimit(STALLED_SECONDS)
        super().connection_lost(exc)

    def _limit(self, seconds: float) -> None:
        """Close the connection in this many seconds."""
        self._timers[seconds] = self.loop.call_later(seconds, self.transport.abort)

    def _unlimit(self, seconds: float) -> None:
        if seconds in self._timers:
            self._timers.pop(seconds).cancel()

    def _should_upgrade(self) -> bool:
        """There are no WebSockets here."""
        return False
