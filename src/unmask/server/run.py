"""Runs uvicorn with a graceful shutdown."""

from __future__ import annotations

import math
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from errno import EADDRINUSE
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from unmask.errors import RequestError
from unmask.server.connections import MOST_HEADER, LimitedConnection
from unmask.server.engine import LOG
from unmask.server.loop_share import LoopShare
from unmask.server.service import Service

SWITCH = 0.0005  # seconds that the engine waits for the interpreter while the event loop is busy
SEND_SECONDS = 10  # for responses that are still being sent when all rows have ended
LAST_SHARE, MOST_LAST = 0.4, 5.0  # of the grace, at most so many seconds: for the last answers
LEAST = 3.0  # seconds that a shutdown gets even if the grace is shorter
LONGEST = 1e8  # seconds; timers take no infinite time


class Server(uvicorn.Server):
    """Listens during its shutdown, so that new requests get a 503.

    The first signal starts the grace period, the second ends it. Rows may decode in its first part;
    the rest is for the last answers and the end of the process. A process that is not done in time
    is ended by the kernel, whatever its threads do.
    """

    def __init__(
        self, config: uvicorn.Config, service: Service, grace: float, ready: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self.service, self.grace, self.ready = service, grace, ready
        self._signals = 0
        self._end = math.inf  # when the shutdown must be over
        self._owns_process = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._signals += 1
        if self._signals > 2:
            self.force_exit = self.should_exit = True
            return
        seconds = min(max(self.grace if self._signals == 1 else 0.0, LEAST), self.seconds_left)
        self._end = time.monotonic() + seconds
        if self._owns_process:
            signal.setitimer(signal.ITIMER_REAL, seconds)  # SIGALRM ends the process

    @property
    def seconds_left(self) -> float:
        """Until the shutdown must be over."""
        return min(max(self._end - time.monotonic(), 0.1), LONGEST)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._owns_process = threading.current_thread() is threading.main_thread()
        sys.setswitchinterval(SWITCH)
        LoopShare(self.service.engine).start()
        self.ready()

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second; True ends the server."""
        if self._signals and not self.service.engine.closing:
            LOG.info(self._closing_line())
            self.service.close(self.grace - min(LAST_SHARE * self.grace, MOST_LAST))
        if self._signals > 1:
            self.service.close(0.0)
        if self.service.closed():
            self.should_exit = True
        return await super().on_tick(counter)

    def _closing_line(self) -> str:
        rows = self.service.engine.rows + self.service.engine.waiting
        if not rows:
            return "closing"
        return f"closing; rows to finish within {self.grace:g} s: {rows}; a second signal ends them"

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Send what is left, within half of the remaining time."""
        self.config.timeout_graceful_shutdown = int(
            max(1, min(self.seconds_left / 2, SEND_SECONDS))
        )
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to the host and port."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, kind, number, _, address = addresses[0]
        bound = socket.socket(family, kind, number)
    except (OSError, UnicodeError, OverflowError) as error:
        raise RequestError(f"the host {host!r} cannot be used: {error}") from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        if error.errno == EADDRINUSE:
            raise RequestError(f"port {port} is in use; choose another with --port") from None
        raise RequestError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return bound


def server_of(
    app: ASGIApp, service: Service, grace: float, ready: Callable[[], None] = lambda: None
) -> Server:
    """A server for the app that does not run yet."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        backlog=1024,
        http=LimitedConnection,
        ws="none",
        h11_max_incomplete_event_size=MOST_HEADER,
    )
    return Server(config, service, grace, ready)
