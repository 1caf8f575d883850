"""Shutdown: running requests finish or get an error, and new requests are refused."""

import json
import os
import re
import signal
import threading
import time
from contextlib import contextmanager

import httpx
import pytest

from tests.forked import Fork
from tests.server.serving import PENS, Gate, events_of, run_text, serving, text_of

BODY = {"messages": [{"role": "user", "content": PENS}]}


@contextmanager
def gated(*options):
    gates = []

    def gate(model):
        gates.append(Gate(model))
        return gates[0]

    with serving("--batch-size", 1, *options, wrap=gate) as running:
        try:
            yield running, gates[0]
        finally:
            gates[0].let_all()


@contextmanager
def asked(running, count, stream):
    """This many requests that run or wait."""
    clients = [
        httpx.Client(base_url=running.url, timeout=60, trust_env=False) for _ in range(count)
    ]
    responses, threads = {}, []

    def ask(number):
        body = {**BODY, "stream": stream}
        responses[number] = clients[number].post("/v1/chat/completions", json=body)

    for number in range(count):
        threads.append(threading.Thread(target=ask, args=(number,)))
        threads[-1].start()
    yield responses, threads
    for thread in threads:
        thread.join(60)
    for client in clients:
        client.close()


def here(running, count):
    engine = running.service.engine
    return engine.rows + engine.waiting == count


def wait_until(condition):
    done = threading.Event()
    while not condition():
        assert not done.wait(0.005)


@pytest.mark.parametrize("stream", [False, True])
def test_what_runs_and_waits_is_finished_and_what_is_new_is_refused(stream):
    with gated() as (running, gate), asked(running, 3, stream) as (responses, threads):
        wait_until(lambda: here(running, 3))
        running.server.handle_exit(signal.SIGTERM, None)
        wait_until(lambda: running.service.engine.closing)
        late = running.chat()
        assert late.status_code == 503
        assert late.json()["error"]["code"] == "closing"
        assert int(late.headers["retry-after"]) >= 1
        with running.http as http:
            health = http.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "closing")
        gate.let_all()
        for thread in threads:
            thread.join(60)
        running.thread.join(30)
        assert not running.thread.is_alive()
        for response in responses.values():
            assert response.status_code == 200
            text = (
                text_of(events_of(response.text))
                if stream
                else response.json()["choices"][0]["message"]["content"]
            )
            assert text.endswith("15 - 5 = 10. #### 10")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("signals", [1, 2])
def test_what_is_not_finished_in_time_is_told_so(stream, signals):
    grace = 0.05 if signals == 1 else 60
    with (
        gated("--grace", grace) as (running, gate),
        asked(running, 3, stream) as (responses, threads),
    ):
        wait_until(lambda: here(running, 3))
        for _ in range(signals):
            running.server.handle_exit(signal.SIGINT, None)
        for thread in threads:
            thread.join(60)
        gate.let_all()
        running.thread.join(30)
        assert not running.thread.is_alive()
        for response in responses.values():
            assert response.status_code == (200 if stream else 503)
            last = response.text.split("\n\n")[-2][6:] if stream else response.text
            assert json.loads(last)["error"]["code"] == "closing"


def test_the_last_answers_go_out_within_the_grace():
    with gated("--grace", 8) as (running, _), asked(running, 3, False) as (responses, threads):
        wait_until(lambda: here(running, 3))
        begin = time.monotonic()
        running.server.handle_exit(signal.SIGTERM, None)
        for thread in threads:
            thread.join(60)
        running.thread.join(30)
        assert time.monotonic() - begin < 8  # the forward of the gate takes longer
        assert [response.status_code for response in responses.values()] == [503] * 3


def test_a_second_signal_does_not_give_the_shutdown_more_time():
    with serving("--grace", 2) as running:
        for _ in range(2):
            running.server.handle_exit(signal.SIGTERM, None)
            assert running.server.seconds_left <= 3


@contextmanager
def process(*options, env=None):
    """`unmask serve` as a user starts it, and its address."""
    started = Fork(
        "-m", "unmask", "serve", "--port", 0, *options, env={**os.environ, **(env or {})}
    )
    try:
        line = started.stderr.readline()
        if " on http" not in line:  # the rule that is recommended for the model
            line = started.stderr.readline()
        yield started, re.fullmatch(r"unmask serve: \S+ on (http://\S+)\n", line)[1]
    finally:
        started.kill()
        started.wait()
        started.stdout.close()
        started.stderr.close()


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_when_all_is_answered(sign, capsys):
    expected = run_text(capsys, PENS, "--length", 100, "--rule", "confidence | top(1)")
    with process("--grace", "300", env={"UNMASK_API_KEY": "k"}) as (server, url):
        body = {**BODY, "stream": True, "length": 100, "rule": "confidence | top(1)"}
        key = {"Authorization": "Bearer k"}
        with httpx.Client(base_url=url, timeout=300, trust_env=False, headers=key) as client:
            assert client.get("/v1/models", headers={"Authorization": "x"}).status_code == 401
            with client.stream("POST", "/v1/chat/completions", json=body) as response:
                server.send_signal(sign)
                text = text_of(events_of("".join(response.iter_text())))
        assert server.wait(60) == 0
        refused, answered, closing = sorted(server.stderr.read().splitlines())
        assert refused.startswith("unmask serve: 127.0.0.1 GET /v1/models 401 ")
        assert answered.startswith("unmask serve: 127.0.0.1 POST /v1/chat/completions 200 ")
        assert closing == (
            "unmask serve: closing; rows to finish within 300 s: 1; a second signal ends them"
        )
    assert text == expected["text"]
