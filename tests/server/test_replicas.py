"""`unmask serve --ray`: two replicas on a real cluster answer as one process does."""

from __future__ import annotations

import gzip
import json
import signal
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.lab.ray.commands import command_of, done, start, wait_for, workers
from tests.server.serving import PENS, WORDS, events_of, serving, text_of

REPLICA = "ray::ServeReplica:unmask"


@pytest.fixture(scope="module")
def served(address):
    """A client of `unmask serve` with two replicas, and the process."""
    process = start(*command_of("unmask serve"), "--port", 0, "--grace", 5, RAY_ADDRESS=address)
    line = process.stderr.readline()
    try:
        assert line.startswith("unmask serve: embedded on http://127.0.0.1:"), (
            line + process.stderr.read()
        )
        assert line.endswith(", 2 replicas\n")
        url = line.split()[4].rstrip(",")
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        code, _, stderr = done(process, 60)
    assert (code, stderr) == (0, "")
    assert workers(REPLICA) == []


def ask(client, text, **fields):
    body = {"messages": [{"role": "user", "content": text}], **fields}
    return client.post("/v1/chat/completions", json=body)


def lasting(response):
    """An answer without its id and its time."""
    assert response.status_code == 200, response.text
    answer = response.json()
    for name in ("id", "created"):
        del answer[name]
    return answer


def test_replicas_answer_what_one_process_answers(served):
    asked = [(text, rule) for text in WORDS for rule in ("swd", "confidence | eb(0.1)")]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda one: lasting(ask(served, one[0], rule=one[1])), asked))
    with serving() as alone:
        expected = [lasting(alone.chat(text, rule=rule)) for text, rule in asked]
    assert answers == expected


def test_a_stream_comes_through_the_proxy_in_pieces(served):
    whole = lasting(ask(served, PENS))["choices"][0]["message"]["content"]
    events = events_of(ask(served, PENS, stream=True).text)
    assert len(events) > 3
    assert text_of(events) == whole


def test_what_is_refused_is_refused_as_by_one_process(served):
    wrong = ask(served, PENS, rule="conf")
    assert wrong.status_code == 400
    assert "unknown rule or recipe 'conf'" in wrong.json()["error"]["message"]
    stranger = served.get("/health", headers={"Host": "example.org"})
    assert stranger.status_code == 421


def test_a_trace_is_found_whichever_replica_keeps_it(served):
    answer = ask(served, PENS, trace=True).json()
    name = answer["choices"][0]["unmask"]["trace"]
    traces = {served.get(f"/v1/traces/{name}").content for _ in range(8)}
    assert len(traces) == 1
    lines = gzip.decompress(traces.pop()).splitlines()
    assert len(lines) > answer["usage"]["nfe"]
    assert all(json.loads(line) for line in lines)
    assert served.get("/v1/traces/none").status_code == 404


def test_the_place_of_a_killed_replica_is_taken(served):
    before = {process.pid for process in workers(REPLICA)}
    assert len(before) == 2
    expected = lasting(ask(served, PENS))
    victim = workers(REPLICA)[0]
    victim.kill()
    assert lasting(wait_for(lambda: answered(served))) == expected  # the other one goes on
    wait_for(lambda: len({process.pid for process in workers(REPLICA)} - {victim.pid}) == 2)
    assert lasting(wait_for(lambda: answered(served))) == expected


def answered(client):
    """An answer, or None if its replica was just killed."""
    response = ask(client, PENS)
    return response if response.status_code == 200 else None
