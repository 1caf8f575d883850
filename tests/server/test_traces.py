"""Traces of requests: downloaded while they are written and while they are kept."""

from __future__ import annotations

import threading
import time

import pytest

from tests.server.serving import PENS, Gate, serving
from unmask.models.load import load
from unmask.server.traces import TooLong, TraceBuffer, TraceStore
from unmask.trace import Trace
from unmask.trace.recording.replay import difference, replay


def fetched(http, name):
    response = http.get(f"/v1/traces/{name}")
    assert response.status_code == 200
    return response, Trace.of(response.content, name)


def test_a_trace_has_every_step_of_its_row_and_can_be_replayed():
    with serving("--batch-size", 2) as running, running.http as http:
        answer = running.chat(trace=True, n=2, length=16, temperature=0.7).json()
        plain = running.chat(length=16).json()
        for choice in answer["choices"]:
            response, trace = fetched(http, choice["unmask"]["trace"])
            assert response.headers["content-type"] == "application/gzip"
            assert response.headers["content-disposition"].endswith('.trace"')
            assert len(trace.moments) == choice["unmask"]["nfe"]
            assert trace.end["text"] == choice["message"]["content"]
            again = Trace.of(replay(trace, load().model))
            parted = difference(trace, again)
            assert parted is None or parted.what == "numbers"  # it ran beside others
        assert plain["choices"][0]["unmask"]["trace"] is None
        assert http.get("/v1/traces/unknown").status_code == 404
        assert running.service.traces.size > 0


def test_a_stream_names_its_trace_first_and_last_also_where_a_stop_string_ends_it():
    with serving() as running, running.http as http:
        events = running.stream(PENS, trace=True, stop="15", rule="confidence | ar(2)")
        name = events[-1]["choices"][0]["unmask"]["trace"]
        assert events[0]["choices"][0]["unmask"] == {"trace": name}
        _, trace = fetched(http, name)
    assert not trace.finished
    assert len(trace.moments) == events[-1]["choices"][0]["unmask"]["nfe"]


def test_a_trace_can_be_read_while_it_is_written(monkeypatch):
    monkeypatch.setattr("unmask.trace.recording.tracer.STEPS", 1)
    gates = []

    def gated(model):
        gates.append(Gate(model))
        return gates[0]

    with serving(wrap=gated) as running, running.http as http:
        begun, said = threading.Event(), {}

        def ask():
            body = {"prompt": PENS, "stream": True, "trace": True, "rule": "confidence | top(1)"}
            with running.http as own, own.stream("POST", "/v1/completions", json=body) as answer:
                for line in answer.iter_lines():
                    if "trace" in line and not begun.is_set():
                        said["name"] = line.partition('"trace": "')[2].partition('"')[0]
                        begun.set()

        asking = threading.Thread(target=ask)
        asking.start()
        assert begun.wait(30)
        for _ in range(3):
            gates[0].permits.release()
        with http.stream("GET", f"/v1/traces/{said['name']}") as response:
            data = b""
            for piece in response.iter_bytes():
                data += piece
                if len(Trace.of(data).moments) >= 3:
                    break
            assert not Trace.of(data).finished
            gates[0].let_all()
        asking.join(30)
        _, trace = fetched(http, said["name"])
        assert trace.finished


def test_a_client_that_leaves_takes_its_trace_along():
    with serving() as running, running.http as http:
        body = {"prompt": PENS, "stream": True, "trace": True, "length": 512, "eos": "suppress"}
        with http.stream("POST", "/v1/completions", json=body) as answer:
            next(answer.iter_lines())
        deadline = time.monotonic() + 30
        while running.service.traces.size and time.monotonic() < deadline:
            time.sleep(0.01)
        assert running.service.traces.size == 0


def test_a_trace_that_is_too_long_is_left_out_and_the_answer_is_not():
    with serving() as running:
        running.service.traces.most_bytes_each = 1000
        answer = running.chat(trace=True).json()
        assert answer["choices"][0]["message"]["content"].endswith("#### 10")
        assert answer["choices"][0]["unmask"]["trace"] is None
        assert running.service.traces.size == 0


def test_a_trace_that_fails_fails_its_own_request():
    def broken(stream, request):
        raise ZeroDivisionError

    with serving(traces=broken) as running:
        assert running.chat(trace=True).status_code == 500
        assert running.chat().status_code == 200


def test_a_server_without_traces_says_so():
    with serving(traces=None) as running:
        error = running.chat(trace=True).json()["error"]
        assert error["message"] == "this server keeps no traces; leave out trace"


def whole_sheet(store, size):
    sheet = store.open()
    sheet.write(b"x" * size)
    sheet.whole = True
    store.close(sheet)
    return sheet.name


def test_the_store_lets_go_of_what_was_not_read_for_longest():
    store = TraceStore(most_bytes=30)
    a, b, c = (whole_sheet(store, 10) for _ in range(3))
    assert store.get(a)
    d = whole_sheet(store, 10)
    assert [name for name in (a, b, c, d) if store.get(name)] == [a, c, d]
    assert store.size == 30
    assert store.get(whole_sheet(store, 31)) is None
    assert store.size == 0


def test_a_sheet_does_not_outgrow_its_size():
    sheet = TraceBuffer("name", 10)
    sheet.write(b"x" * 10)
    with pytest.raises(TooLong):
        sheet.write(b"y")


def test_metrics_can_be_read_while_a_trace_is_written(monkeypatch):
    def exported(buffer):
        raise AssertionError("a write fails while another thread looks into the buffer")

    monkeypatch.setattr(TraceBuffer, "getbuffer", exported, raising=False)
    store = TraceStore()
    sheet = store.open()
    for count in range(1, 4):
        sheet.write(b"x" * 50)
        assert store.size == 50 * count
    sheet.begin_again()
    assert store.size == 0


def test_closing_a_trace_does_not_look_at_the_others():
    store = TraceStore(most_bytes=10**6)
    names = [whole_sheet(store, 10) for _ in range(1000)]
    for name in names:
        store.get(name).size = property()  # nobody may add this up
    whole_sheet(store, 10)
    assert store.size == 10_010
