"""`unmask serve` on a Ray cluster: Ray Serve's proxy in front of replicas, each a whole server."""

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
from unmask.server.traces import Piece, followed

NAME = "unmask"
MOST_AT_ONCE = 1000  # requests of a replica, as of one process; its own queue refuses before that
POLL, PATIENCE = 0.2, 10.0  # seconds between two looks at another replica's trace, and for one
CONTROLLER = "SERVE_CONTROLLER_ACTOR"

Make = Callable[[], tuple[Service, ASGIApp]]  # must pickle: it is called on another machine


class Replica:
    """One process of the cluster with a model, a batch and a queue of its own."""

    def __init__(self, make: Make) -> None:
        self.service, self.routes = make()
        self.service.trace_elsewhere = self._trace_elsewhere
        self.service.start()

    def __serve_build_asgi_app__(self) -> ASGIApp:
        return self.routes

    def check_health(self) -> None:
        """Ray asks every few seconds, and puts another in the place of one that fails."""
        if self.service.engine.broken:
            raise RuntimeError("the engine has failed")

    async def piece(self, name: str, place: int) -> Piece | None:
        """What this replica has of a trace, for the one that was asked for it."""
        sheet = self.service.traces.get(name)
        return None if sheet is None else sheet.piece(place)

    async def _trace_elsewhere(self, name: str) -> AsyncIterator[bytes] | None:
        peers = _ray_serve().get_deployment_handle(NAME, NAME)

        async def look(place: int) -> Piece | None:
            answers = peers.broadcast("piece", name, place)
            found = await answers.results_async(timeout_s=PATIENCE, return_exceptions=True)
            return next((each for each in found if isinstance(each, Piece)), None)

        return None if await look(0) is None else followed(look, POLL)


def serve_on(slots: Slots, make: Make, options: Namespace, say: Callable[[str], None]) -> None:
    """Serve until a signal comes, then finish what has begun within the grace period."""
    serve = _ray_serve()
    port = _port(slots, options)
    stop = _stopped_by_signals()
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
        told = last_line(serve.status().applications[NAME].deployments[NAME].message)
        raise RequestError(f"no replica can be started: {told or error}") from None


def last_line(text: str) -> str:
    """What a traceback says in the end."""
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
    """The port for the proxy; on a machine of our own it must be free, and 0 is any."""
    try:
        slots.ray.get_actor(CONTROLLER, namespace="serve")
    except ValueError:
        pass
    else:
        raise RequestError(
            "Ray Serve runs on this cluster already; end it with `serve shutdown`, or give another "
            "cluster"
        )
    with closing(listen(options.host, options.port)) as bound:
        port: int = bound.getsockname()[1]
    return port


def _stopped_by_signals() -> Event:
    stop = Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: stop.set())
    return stop
