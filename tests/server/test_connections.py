"""Connections: silent, slow and many, they leave the server to the others."""

import asyncio
import socket
import time
from contextlib import ExitStack, contextmanager

import pytest

from tests.server.serving import Gate, serving
from unmask.server import connections, guard
from unmask.server.errors import ApiError
from unmask.server.guard import Pace


@contextmanager
def sockets(running, count):
    """This many connections that say nothing."""
    port = int(running.url.rpartition(":")[2])
    with ExitStack() as stack:
        opened = [socket.create_connection(("127.0.0.1", port), 30) for _ in range(count)]
        yield [stack.enter_context(each) for each in opened]


def is_closed(connection):
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def sent(connection, data):
    """Whether the connection still takes data."""
    try:
        connection.sendall(data)
    except OSError:
        return False
    return True


def test_silent_connections_make_room_for_those_that_speak(monkeypatch):
    monkeypatch.setattr(connections, "MOST_EACH", 20)
    with serving() as running, running.http as kept:
        assert kept.get("/health").status_code == 200
        with sockets(running, 60) as silent:
            assert running.chat().status_code == 200
            assert kept.get("/health").status_code == 200  # it has spoken, so it stays
            assert all(is_closed(each) for each in silent[:38])
            assert len(running.server.server_state.connections) <= 21


BODY = b'{"prompt": "Repeat: pig."}'
HEAD = (
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n" % len(BODY)
)


def test_connections_that_are_all_at_work_stay_and_a_new_one_is_refused(monkeypatch):
    monkeypatch.setattr(connections, "MOST_EACH", 1)
    gates = []
    with (
        serving(wrap=lambda model: gates.append(Gate(model)) or gates[0]) as running,
        sockets(running, 1) as (first,),
    ):
        first.sendall(HEAD + BODY)
        gates[0].wait()
        with sockets(running, 1) as (second,):
            answer = second.recv(4096)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"too_many_connections" in answer
        gates[0].let_all()
        assert first.recv(4096).startswith(b"HTTP/1.1 200 ")


WAITS = HEAD.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")


@pytest.mark.parametrize("beginning", [HEAD, HEAD + BODY[:1], WAITS])
def test_connections_whose_bodies_do_not_come_make_room(monkeypatch, beginning):
    monkeypatch.setattr(connections, "MOST_EACH", 20)
    with serving() as running, sockets(running, 20) as waiting:
        for each in waiting:
            each.sendall(beginning)
        while sum(each.cycle is not None for each in running.server.server_state.connections) < 20:
            time.sleep(0.005)
        assert running.chat().status_code == 200


def test_headers_that_do_not_end_are_not_waited_for(monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    with serving() as running, sockets(running, 2) as (silent, dripping):
        begin = time.monotonic()
        dripping.sendall(b"GET /health HTTP/1.1\r\n")
        while time.monotonic() - begin < 20 and sent(dripping, b"x: y\r\n"):
            time.sleep(0.02)
        assert time.monotonic() - begin < 10
        assert is_closed(silent)


def test_large_headers_are_refused_before_the_key_is_read():
    with serving(key="k") as running, sockets(running, 1) as (one,):
        one.sendall(b"GET /v1/models HTTP/1.1\r\n")
        count = 0
        while count < 16_000 and sent(one, b"x: " + b"y" * 1000 + b"\r\n"):
            count += 1
        assert count < 8000  # what the kernel's buffers hold


def test_a_client_that_polls_is_slowed_and_then_refused():
    async def poll(pace, count):
        begin = time.monotonic()
        await asyncio.gather(*(pace.wait("a") for _ in range(count)))
        return time.monotonic() - begin

    assert asyncio.run(poll(Pace(rate=1000, burst=50), 50)) < 0.5
    assert asyncio.run(poll(Pace(rate=100, burst=10), 40)) >= 0.28

    async def too_many():
        pace = Pace(rate=1, burst=1)
        pace.longest = 0.0
        await pace.wait("a")
        await pace.wait("a")
        with pytest.raises(ApiError, match="more than 1 requests a second without a key"):
            await pace.wait("a")
        await pace.wait("b")

    asyncio.run(too_many())


def test_keys_cannot_be_tried_quickly(monkeypatch):
    monkeypatch.setattr(guard.Pace, "longest", 0.0)
    with serving(key="right") as running, running.http as http:
        right = {"Authorization": "Bearer right"}
        statuses = [http.get("/v1/models").status_code for _ in range(60)]
        assert set(statuses) == {401, 429}
        assert http.get("/v1/models", headers=right).status_code == 200
