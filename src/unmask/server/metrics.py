"""What the server tells Prometheus, and the layer that counts its requests."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unmask.server.engine import Engine
from unmask.server.stream import GONE
from unmask.server.traces import TraceStore

ROUTES = ("/v1/chat/completions", "/v1/completions", "/v1/models", "/v1/traces", "/metrics",
          "/health", "/static", "/openapi.json")  # fmt: skip
LEFT = 499  # the client did not wait for the answer
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250)


class EngineNumbers(Collector):
    """The engine's own counts, read when they are asked for."""

    def __init__(self, engine: Engine, traces: TraceStore) -> None:
        self.engine, self.traces = engine, traces

    def collect(self) -> Iterator[Metric]:
        engine, counts = self.engine, self.engine.counts
        gauges = {
            "rows": ("Rows that decode now.", engine.rows),
            "queue_length": ("Rows that wait for a place.", engine.waiting),
            "trace_bytes": ("Bytes of traces that are kept.", self.traces.size),
        }
        totals = {
            "forwards": ("Forward passes of the batch.", counts.forwards),
            "row_forwards": ("Forward passes, counted for every row.", counts.row_forwards),
            "tokens": ("Tokens written by finished rows.", counts.tokens),
            "rows_finished": ("Rows that were finished.", counts.finished),
            "rows_failed": ("Rows that failed as they were decoded.", counts.failed),
            "rows_cancelled": (
                "Rows whose client left, or that a shutdown ended.",
                counts.cancelled,
            ),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(f"unmask_{name}", text, value=value)
        for name, (text, value) in totals.items():
            yield CounterMetricFamily(f"unmask_{name}", text, value=value)


class Metrics:
    """One registry per server."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, engine: Engine, traces: TraceStore) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(EngineNumbers(engine, traces))
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "unmask_requests", "Requests by route and status.", ["route", "status"],
            registry=self.registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "unmask_request_seconds", "From a request's head to its answer's end.", ["route"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self.first_text = Histogram(
            "unmask_first_text_seconds", "Until the first text of a stream is sent.", ["route"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip

    def text(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self.registry)


def route_of(path: str) -> str:
    """The route, of which there are few; paths are as many as clients please."""
    return next((route for route in ROUTES if path.startswith(route)), "/" if path == "/" else "?")


class Measured:
    """The outermost layer: counts every request by its status, and times it."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        route, begin, status = route_of(scope["path"]), perf_counter(), 500

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, counted)
        finally:
            status = LEFT if scope.get(GONE) else status
            self.metrics.requests.labels(route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(perf_counter() - begin)
