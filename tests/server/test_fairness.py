"""Fairness: no request and no client takes the batch from the others."""

import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from tests.helpers import random_lookup
from tests.server.serving import Gate, serving
from tests.server.test_engine import Asked
from unmask.errors import RequestError
from unmask.server import service
from unmask.server.engine import Engine
from unmask.server.fairness import Account, next_rows
from unmask.server.guard import client_of
from unmask.server.prepare import prepare


@dataclass(eq=False)
class Waiting:
    account: Account = field(default_factory=Account)


def rows(count, client=None):
    """The rows of one request."""
    account = Account(client)
    return [Waiting(account) for _ in range(count)]


def test_one_request_takes_at_most_half_of_the_batch():
    for batch_size, share in ((8, 4), (7, 3), (2, 1), (1, 1)):
        waiting = deque(rows(8))
        assert len(next_rows(waiting, [], batch_size)) == share
        assert len(waiting) == 8 - share


def test_one_client_leaves_a_quarter_of_the_batch_to_others():
    waiting = deque(row for _ in range(12) for row in rows(1, "greedy"))
    running = next_rows(waiting, [], 8)
    assert len(running) == 6
    other = rows(1, "other")
    waiting.extend(other)
    assert next_rows(waiting, running, 8) == other
    local = deque(row for _ in range(12) for row in rows(1))  # nobody knows who they are
    assert len(next_rows(local, [], 8)) == 8


def test_a_free_place_goes_to_who_has_least_and_then_to_who_waited_longest():
    first, second, third = rows(3, "a"), rows(2, "a"), rows(1, "b")
    waiting = deque([*first, *second, *third])
    assert next_rows(waiting, [], 4) == [first[0], third[0], second[0], first[1]]
    assert next_rows(deque([*first, *second]), [first[0]], 2) == []


def test_a_neighbour_overtakes_the_choices_of_a_large_request():
    gate = Gate(random_lookup(0))
    engine = Engine(gate, batch_size=2)
    many = [Asked(gate, prompt=(n,), length=6) for n in range(4)]
    account = Account()
    for one in many:
        one.account = account
    small = Asked(gate, prompt=(5,), length=2)
    engine.start()
    try:
        engine.submit(many)
        gate.wait()
        engine.submit([small])
        gate.let_all()
        small.check(gate.model)
        assert not many[1].done.is_set()
        for one in many:
            one.check(gate.model)
    finally:
        engine.stop()


def test_a_request_cannot_spend_more_than_it_may():
    account = Account(most_cost=100)
    account.begin()
    account.spend(60)
    with pytest.raises(RequestError, match=r"more than 100 positions times forwards.*--max-cost"):
        account.spend(60)
    account = Account(most_seconds=0)
    account.begin()
    with pytest.raises(RequestError, match=r"decoded for more than 0 s.*--max-seconds"):
        account.spend(1)


def test_a_request_that_costs_too_much_is_refused_and_its_rows_are_free():
    with serving("--batch-size", 4, "--max-cost", 3000) as running:
        asked = {"rule": "confidence | top(1)", "length": 40}
        assert running.chat(**asked).status_code == 200
        refusal = running.chat(**asked, n=4)
        assert refusal.status_code == 400
        assert "--max-cost" in refusal.json()["error"]["message"]
        assert running.chat(**asked).status_code == 200


def test_a_request_over_its_cost_or_time_gets_the_field_that_makes_it_long():
    sizes = [("length", {"length": 9}), ("max_tokens", {"max_tokens": 9}), ("length", {})]
    for option, limit in (("--max-cost", 1), ("--max-seconds", 1e-9)):
        with serving(option, limit) as running:
            refusals = [(name, running.chat(**asked)) for name, asked in sizes]
            refusals.append(("messages", running.chat("Say [MASK*5].", infill=True)))
            refusals.append(("prompt", running.complete("Say [MASK*5].", infill=True)))
        for name, refusal in refusals:
            error = refusal.json()["error"]
            assert (refusal.status_code, error["param"]) == (400, name)
            assert option in error["message"]


def test_a_client_is_an_address_and_this_machine_is_nobody():
    names = {
        "192.0.2.7": "192.0.2.7",
        "::ffff:192.0.2.7": "192.0.2.7",
        "2001:db8:1:2:3::4": "2001:db8:1:2::/64",
        "127.0.0.1": None,
        "::1": None,
        "fe80::1%eth0": "fe80::/64",
        "testclient": None,
    }
    for host, name in names.items():
        assert client_of({"client": (host, 5)}) == name
    assert client_of({"client": None}) is None


def test_a_language_that_takes_long_to_build_delays_no_other_request(monkeypatch):
    go = threading.Event()

    def slowly(served, body):
        assert body.regex is None or go.wait(60)
        return prepare(served, body)

    monkeypatch.setattr(service, "prepare", slowly)
    with serving("--batch-size", 2, "--queue", 4) as running, ThreadPoolExecutor(3) as pool:
        slow = [pool.submit(running.chat, regex="( fox){3}") for _ in range(3)]
        deadline = time.monotonic() + 30
        while running.service.health()["waiting"] < 3 and time.monotonic() < deadline:
            time.sleep(0.005)
        assert running.chat(regex=" fox").status_code == 429  # half of the room is for others
        assert running.chat().status_code == 200
        go.set()
        assert [each.result().status_code for each in slow] == [200] * 3
