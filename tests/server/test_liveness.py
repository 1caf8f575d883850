"""Whatever a part of a rule does, requests are answered, health is true and shutdown ends."""

import signal
import threading
import time
from dataclasses import dataclass

import httpx
import pytest

import unmask
from tests.helpers import random_lookup
from tests.server.serving import serving
from tests.server.test_engine import Asked
from tests.server.test_shutdown import BODY, process
from unmask.rules.select import best_first, first_in
from unmask.server.engine import Engine

DEADLY = (SystemExit, KeyboardInterrupt, GeneratorExit)


@pytest.fixture
def parts():
    """A selection that raises what is in `kinds`, and one that waits for `go`."""
    kinds, go = [], threading.Event()

    def best(view, scores):
        return first_in(best_first(scores.key, view.masked), 1, view.masked)

    @unmask.selection
    def deadly(view, scores):
        if kinds:
            raise kinds[0]
        return best(view, scores)

    @unmask.selection
    def endless(view, scores):
        assert go.wait(60)
        return best(view, scores)

    yield kinds, go
    go.set()


def test_a_rule_that_ends_the_interpreter_ends_only_its_own_request(parts, caplog):
    kinds, _ = parts
    with serving("--batch-size", 4) as running:
        for kind in (*DEADLY, KeyError):
            kinds[:] = [kind]
            for fields in ({}, {"n": 3}):
                response = running.chat(rule="confidence | deadly", **fields)
                assert response.status_code == 500
                assert response.json()["error"]["message"] == f"decoding failed: {kind.__name__}"
            assert running.chat().status_code == 200
            assert running.service.health()["status"] == "ok"
        assert running.service.engine.idle


def test_an_error_inside_admission_is_answered(caplog):
    model = random_lookup(0)
    engine = Engine(model)
    bad, fine = Asked(model), Asked(model, prompt=(2,))
    object.__setattr__(bad.request, "seed", "no number")
    engine.start()
    try:
        engine.submit([bad, fine])
        with pytest.raises(RuntimeError, match="manual_seed"):
            bad.result()
        fine.check(model)
        assert engine.idle
    finally:
        engine.stop()


def test_a_step_that_does_not_end_is_told_to_clients_and_health(parts):
    _, go = parts
    with serving("--step-timeout", 1) as running:
        first = running.chat(rule="confidence | endless")
        assert (first.status_code, first.json()["error"]["code"]) == (503, "stuck")
        later = running.chat()
        assert (later.status_code, later.json()["error"]["code"]) == (503, "stuck")
        with running.http as http:
            health = http.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "stuck")
        assert health.json()["seconds_since_step"] > 1
        go.set()  # the step ends after all
        deadline = time.monotonic() + 10
        while running.service.stuck and time.monotonic() < deadline:
            time.sleep(0.01)
        assert running.chat().status_code == 200
        assert running.service.health()["seconds_since_step"] < 1


def test_health_tells_progress():
    with serving() as running:
        before = running.service.health()["forwards"]
        running.chat(length=5, rule="confidence | top(1)")
        assert running.service.health()["forwards"] == before + 5


LOOP = """
import unmask, time

@unmask.selection
def spins(view, scores):
    while True:
        pass
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "sign", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_signal_ends_a_server_whose_rule_loops_for_ever(sign, tmp_path):
    (tmp_path / "spins.py").write_text(LOOP)
    options = ("--import", str(tmp_path / "spins.py"), "--grace", "0.3")
    with process(*options) as (server, url):
        answers = []

        def ask():
            body = {**BODY, "rule": "confidence | spins"}
            with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
                answers.append(client.post("/v1/chat/completions", json=body))

        thread = threading.Thread(target=ask)
        thread.start()
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            while not client.get("/health").json()["rows"]:
                time.sleep(0.02)
        server.send_signal(sign)
        assert server.wait(30) == 1
        thread.join(30)
        assert answers[0].status_code == 503
        assert answers[0].json()["error"]["code"] == "closing"
        assert "a step did not end" in server.stderr.read()


LINGERS = """
import threading, time

threading.Thread(target=time.sleep, args=(1e6,)).start()
"""


def test_a_thread_that_never_ends_does_not_hold_the_process_beyond_the_grace(tmp_path):
    (tmp_path / "lingers.py").write_text(LINGERS)
    with process("--import", str(tmp_path / "lingers.py"), "--grace", "3") as (server, url):
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            assert client.post("/v1/chat/completions", json=BODY).status_code == 200
        begin = time.monotonic()
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == -signal.SIGALRM
        assert time.monotonic() - begin < 3.5


HOLD = """
import re, unmask

@unmask.selection
def holds(view, scores):
    re.match("(a+)+$", "a" * 60 + "b")  # takes years, and no other thread runs
"""


@pytest.mark.long
def test_a_rule_that_holds_the_interpreter_for_ever_ends_the_process(tmp_path):
    (tmp_path / "holds.py").write_text(HOLD)
    options = ("--import", str(tmp_path / "holds.py"), "--step-timeout", "1")
    with process(*options) as (server, url):
        time.sleep(4)  # an idle server does not end
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            assert client.post("/v1/chat/completions", json=BODY).status_code == 200
            with pytest.raises(httpx.TransportError):
                client.post("/v1/chat/completions", json={**BODY, "rule": "confidence | holds"})
        assert server.wait(30) == 1
        assert "holds.py" in server.stderr.read()


def test_a_part_that_ends_the_interpreter_while_a_request_is_prepared_is_answered(caplog):
    @unmask.selection
    @dataclass(frozen=True)
    class Ends:
        x: int = 0

        def __post_init__(self):
            if self.x:
                raise SystemExit

        def __call__(self, view, scores):
            return view.masked

    with serving() as running:
        response = running.chat(rule="confidence | Ends(1)")
        assert response.status_code == 500
        assert response.json()["error"]["message"] == "decoding failed: SystemExit"
        assert running.chat().status_code == 200
