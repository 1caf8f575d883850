"""Silent sockets, pollers, killed clients and the greatest request: neighbours are answered."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from tests.server.serving import serving

pytestmark = pytest.mark.hostile

SILENT, POLLERS, KILLED, NEIGHBOURS = 200, 2, 10, 20


def test_neighbours_of_an_attack_are_answered_and_the_server_ends():
    with ExitStack() as stack:
        running = stack.enter_context(serving("--grace", 0.5))
        port, end = int(running.url.rpartition(":")[2]), threading.Event()
        right = running.chat().json()["choices"]

        def greatest():
            fields = {"n": 8, "length": 1024, "rule": "confidence | top(1)", "eos": "suppress"}
            return running.chat("Repeat:" + " pig" * 120, **fields).status_code

        def poll():
            with running.http as http:
                while not end.is_set():
                    assert http.get("/health").status_code in (200, 429, 503)

        def kill(number):
            with httpx.Client(base_url=running.url, trust_env=False, timeout=0.05) as http:
                body = {"prompt": f"Repeat: pig {number}.", "length": 200, "eos": "suppress"}
                with pytest.raises(httpx.TimeoutException):
                    http.post("/v1/completions", json=body)

        pool = stack.enter_context(ThreadPoolExecutor(POLLERS + 1 + 8))
        stack.callback(end.set)
        heavy = pool.submit(greatest)
        deadline = time.monotonic() + 30
        while not running.service.engine.rows and time.monotonic() < deadline:
            time.sleep(0.01)
        for _ in range(SILENT):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 30))
        polling = [pool.submit(poll) for _ in range(POLLERS)]
        list(pool.map(kill, range(KILLED)))
        answers = list(pool.map(lambda _: running.chat(), range(NEIGHBOURS)))
        assert [answer.status_code for answer in answers] == [200] * NEIGHBOURS
        assert all(answer.json()["choices"] == right for answer in answers)
        assert not heavy.done()
        end.set()
        for each in polling:
            each.result(30)
        begin = time.monotonic()
        running.server.handle_exit(15, None)
        assert heavy.result(30) == 503
        running.thread.join(30)
        assert not running.thread.is_alive()
        assert time.monotonic() - begin < 15
