"""Checks the host, the API key and the body's size before a request reaches its route."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Collection
from hashlib import sha256
from ipaddress import ip_address, ip_network
from math import ceil
from time import monotonic

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unmask.server.errors import ApiError
from unmask.server.limits import RequestLimits

OPEN = ("/", "/health", "/openapi.json", "/static/")  # these need no key


def is_loopback(host: str) -> bool:
    """Whether a host can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def client_of(scope: Scope) -> str | None:
    """The address of the client, of IPv6 its network; None for this machine.

    A proxy and all programs on this machine share one address, so it names no client.
    """
    host = (scope.get("client") or ("", 0))[0]
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    if address.version == 6 and address.ipv4_mapped:
        address = address.ipv4_mapped
    if address.is_loopback:
        return None
    return str(ip_network((address, 64), strict=False)) if address.version == 6 else str(address)


class Pace:
    """Lets each client send `rate` requests a second without a key; `burst` may come at once.

    A client that sends more waits, so that nobody takes the server's time by polling; one that
    would wait too long is refused.
    """

    longest, kept = 2.0, 10_000  # seconds of waiting; clients that are remembered

    def __init__(self, rate: float = 20.0, burst: int = 40) -> None:
        self.rate, self.burst = rate, burst
        self._due: dict[str | None, float] = {}  # when a client's requests would be used up

    async def wait(self, client: str | None) -> None:
        """Wait for the client's turn; raises if it is too far away."""
        now = monotonic()
        if len(self._due) >= self.kept:
            self._due = {each: due for each, due in self._due.items() if due > now}
        due = max(now, self._due.get(client, now))
        delay = due - now - self.burst / self.rate
        if delay > self.longest:
            message = f"more than {self.rate:g} requests a second without a key; send fewer"
            raise ApiError(429, message, code="too_many_requests", retry_after=ceil(delay))
        self._due[client] = due + 1 / self.rate
        if delay > 0:
            await asyncio.sleep(delay)


class Guard:
    """ASGI middleware that checks the Host header and the API key, and limits the body.

    Without a `key` no key is needed. `hosts` are the names that the Host header may hold besides
    loopback names, against DNS rebinding; None allows any.
    """

    def __init__(
        self, app: ASGIApp, limits: RequestLimits, key: str | None, hosts: Collection[str] | None
    ) -> None:
        self.app, self.limits = app, limits
        self._key = None if key is None else sha256(key.encode()).digest()
        self._hosts = None if hosts is None else {host.lower() for host in hosts}
        self._pace = Pace()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            headers = Headers(scope=scope)
            await self._check_access(scope, headers)
            body = await self._body(headers, receive)
        except ApiError as error:
            error.headers["Connection"] = "close"  # the rest of the body is not read
            await error.response()(scope, receive, send)
            return
        if body is None:
            return
        await self.app(scope, _replayed(body, receive), send)

    async def _check_access(self, scope: Scope, headers: Headers) -> None:
        """Check the host and the key; what is open to everybody, or refused, is paced."""
        refusal = None
        try:
            self._check_host(headers.get("host", ""))
            self._check_key(scope["path"], headers.get("authorization", ""))
        except ApiError as error:
            refusal = error
        if refusal is not None or _is_open(scope["path"]):
            await self._pace.wait(client_of(scope))
        if refusal is not None:
            raise refusal

    def _check_host(self, host: str) -> None:
        name, _, _ = host.rpartition(":") if host.rfind(":") > host.rfind("]") else (host, "", "")
        name = name.lower()
        if self._hosts is not None and name not in self._hosts and not is_loopback(name):
            host = f"the host {name[:100]!a}"
            message = f"this server does not answer to {host}; allow it with --allow-host"
            raise ApiError(421, message, code="wrong_host")

    def _check_key(self, path: str, authorization: str) -> None:
        if self._key is None or _is_open(path):
            return
        kind, _, key = authorization.partition(" ")
        digest = sha256(key.strip().encode("latin-1", "replace")).digest()
        same = hmac.compare_digest(digest, self._key)
        if kind.lower() != "bearer" or not same:
            message = "send the server's key as 'Authorization: Bearer KEY'"
            challenge = {"WWW-Authenticate": "Bearer"}
            raise ApiError(401, message, code="invalid_api_key", headers=challenge)

    async def _body(self, headers: Headers, receive: Receive) -> bytes | None:
        """The whole body; None if the client left before the body was complete."""
        most = self.limits.body
        stated = headers.get("content-length", "0")
        too_large = ApiError(413, f"the body may have at most {most} bytes", code="body_too_large")
        if not stated.isdecimal() or len(stated) > 18 or int(stated) > most:
            raise too_large
        try:
            return await asyncio.wait_for(_read(receive, most, too_large), self.limits.seconds)
        except asyncio.TimeoutError:
            seconds = self.limits.seconds
            raise ApiError(408, f"the body did not arrive within {seconds:g} s") from None


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith(OPEN[-1])


async def _read(receive: Receive, most: int, too_large: ApiError) -> bytes | None:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > most:
            raise too_large
        if not message.get("more_body", False):
            return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body first, then later messages."""
    first = True

    async def replay() -> Message:
        nonlocal first
        if first:
            first = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replay
