"""`unmask serve` on a Ray cluster: each replica behind Ray Serve's proxy is a whole server."""

from __future__ import annotations

import logging
import signal
from argparse import Namespace
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from threading import Event
from typing import Any

from starlette.types import ASGIApp

from unmask.errors import RequestError
from unmask.lab.ray.join import Slots
from unmask.server.run import listen
from unmask.server.service import Service
from unmask.server.traces import TracePiece, followed

NAME = "unmask"
MOST_AT_ONCE = 1000  # requests of a replica; its own queue is full before that
POLL = 0.2  # seconds between two reads of another replica's trace
TIMEOUT = 10.0  # seconds for one read
CONTROLLER = "SERVE_CONTROLLER_ACTOR"

Make = Callable[[], tuple[Service, ASGIApp]]  # pickled and called on another machine


class Replica:
    """One process of the cluster, with its own model, batch and queue."""

    def __init__(self, make: Make) -> None:
        self.service, self.routes = make()
        self.service.trace_elsewhere = self._trace_elsewhere
        self.service.start()

    def __serve_build_asgi_app__(self) -> ASGIApp:
        return self.routes

    def check_health(self) -> None:
        """Ray calls this every few seconds and replaces a replica that raises."""
        if (status := self.service.health()["status"]) in ("failed", "stuck"):
            raise RuntimeError(f"the engine is {status}")

    async def piece(self, name: str, place: int) -> TracePiece | None:
        """The part of a trace that this replica holds, for the replica that was asked for it."""
        sheet = self.service.traces.get(name)
        return None if sheet is None else sheet.piece(place)

    async def _trace_elsewhere(self, name: str) -> AsyncIterator[bytes] | None:
        peers = _ray_serve().get_deployment_handle(NAME, NAME)

        async def look(place: int) -> TracePiece | None:
            calls = peers.broadcast("piece", name, place)
            pieces = await calls.results_async(timeout_s=TIMEOUT, return_exceptions=True)
            return next((piece for piece in pieces if isinstance(piece, TracePiece)), None)

        return None if await look(0) is None else followed(look, POLL)


def serve_on(slots: Slots, make: Make, options: Namespace, say: Callable[[str], None]) -> None:
    """Serve until a signal, then let started requests finish within the grace period."""
    serve = _ray_serve()
    port = _port(slots, options)
    stop = Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: stop.set())
    serve.start(
        http_options={"host": options.host, "port": port}, logging_config={"log_level": "ERROR"}
    )
    try:
        _deploy(serve, slots, make, options.grace)
        host = f"[{options.host}]" if ":" in options.host else options.host
        say(f"http://{host}:{port}, {slots.count} replicas")
        stop.wait()
    finally:
        serve.shutdown()


def _deploy(serve: Any, slots: Slots, make: Make, grace: float) -> None:
    deployment = serve.deployment(
        serve.ingress()(Replica),
        name=NAME,
        num_replicas=slots.count,
        ray_actor_options=slots.needs,
        max_ongoing_requests=MOST_AT_ONCE,
        max_constructor_retry_count=3,
        health_check_period_s=5,
        graceful_shutdown_wait_loop_s=0.5,
        graceful_shutdown_timeout_s=grace,
        logging_config={"log_level": "ERROR", "enable_access_log": False},
    )
    try:
        serve.run(deployment.bind(make), name=NAME, route_prefix="/")
    except RuntimeError as error:
        reason = last_line(serve.status().applications[NAME].deployments[NAME].message)
        raise RequestError(f"no replica can be started: {reason or error}") from None


def last_line(text: str) -> str:
    """The last line of a traceback."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _ray_serve() -> Any:
    try:
        from ray import serve
    except ImportError as error:
        raise RequestError(
            f"replicas need ray[serve] ({error}); pip install 'unmask[ray,serve]'"
        ) from None
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    return serve


def _port(slots: Slots, options: Namespace) -> int:
    """The proxy's port; it must be free, and 0 picks one."""
    try:
        slots.ray.get_actor(CONTROLLER, namespace="serve")
    except ValueError:
        pass
    else:
        raise RequestError(
            "Ray Serve already runs on this cluster; end it with `serve shutdown`, or name another "
            "cluster"
        )
    with closing(listen(options.host, options.port)) as bound:
        port: int = bound.getsockname()[1]
    return port
