"""Uvicorn, with a shutdown that finishes or refuses but loses nothing."""

from __future__ import annotations

import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from unmask.errors import RequestError
from unmask.server.service import Service

LAST_WORDS = 10  # seconds for answers that are on their way when all decoding is done


class Server(uvicorn.Server):
    """Goes on listening while it goes down, so that whoever asks is told to come again.

    The first signal begins the grace period, the second ends it.
    """

    def __init__(
        self, config: uvicorn.Config, service: Service, grace: float, ready: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self.service, self.grace, self.ready = service, grace, ready
        self._signals = 0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._signals += 1
        if self._signals > 2:
            self.force_exit = self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second; True ends the server."""
        if self._signals and not self.service.engine.closing:
            self.service.close(self.grace)
        if self._signals > 1:
            self.service.close(0.0)
        if self.service.closed():
            self.should_exit = True
        return await super().on_tick(counter)


def listen(host: str, port: int) -> socket.socket:
    """A bound socket, or one line that says why there is none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, kind, number, _, address = found[0]
        bound = socket.socket(family, kind, number)
    except (OSError, UnicodeError, OverflowError) as error:
        raise RequestError(f"the host {host!r} cannot be used: {error}") from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise RequestError(f"{host}:{port} cannot be listened on: {error.strerror}") from None
    return bound


def server_of(
    app: ASGIApp, service: Service, grace: float, ready: Callable[[], None] = lambda: None
) -> Server:
    """Not yet running."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        backlog=1024,
        limit_concurrency=1000,
        timeout_graceful_shutdown=LAST_WORDS,
    )
    return Server(config, service, grace, ready)
