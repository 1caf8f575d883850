"""Metrics for Prometheus, and the middleware that counts, times and logs requests."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from time import perf_counter
from urllib.parse import quote

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
REQUESTS = logging.getLogger("unmask.server.requests")  # a line for each answer, at INFO
LEFT = 499  # status of a request whose client left early
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250)


class EngineMetrics(Collector):
    """The engine's counts, read at each scrape."""

    def __init__(self, engine: Engine, traces: TraceStore) -> None:
        self.engine, self.traces = engine, traces

    def collect(self) -> Iterator[Metric]:
        engine, counts = self.engine, self.engine.counts
        gauges = {
            "rows": ("Rows that are decoding.", engine.rows),
            "queue_length": ("Rows that wait for a place in the batch.", engine.waiting),
            "trace_bytes": ("Bytes of all kept traces.", self.traces.size),
        }
        totals = {
            "forwards": ("Forward passes of the batch.", counts.forwards),
            "row_forwards": ("Forward passes, summed over the rows.", counts.row_forwards),
            "tokens": ("Tokens written by finished rows.", counts.tokens),
            "rows_finished": ("Rows that finished.", counts.finished),
            "rows_failed": ("Rows that failed while decoding.", counts.failed),
            "rows_cancelled": ("Rows ended by a shutdown or a lost client.", counts.cancelled),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(f"unmask_{name}", text, value=value)
        for name, (text, value) in totals.items():
            yield CounterMetricFamily(f"unmask_{name}", text, value=value)


class Metrics:
    """The metrics of one server, in a registry of their own."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, engine: Engine, traces: TraceStore) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(EngineMetrics(engine, traces))
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "unmask_requests", "Requests by route and status.", ["route", "status"],
            registry=self.registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "unmask_request_seconds", "Seconds from request to end of response.", ["route"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self.first_text = Histogram(
            "unmask_first_text_seconds", "Seconds until a stream's first text.", ["route"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)


def route_of(path: str) -> str:
    """The route of a path, as a label; there are few routes and any number of paths."""
    return next((route for route in ROUTES if path.startswith(route)), "/" if path == "/" else "?")


class RequestMeter:
    """ASGI middleware that counts every request by its status, times it and logs it."""

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
            seconds = perf_counter() - begin
            self.metrics.seconds.labels(route).observe(seconds)
            if REQUESTS.isEnabledFor(logging.INFO):
                host = (scope.get("client") or ("?", 0))[0]
                path = quote(scope["path"][:200])  # one line, whatever a client sends
                REQUESTS.info("%s %s %s %d %.2f s", host, scope["method"], path, status, seconds)
