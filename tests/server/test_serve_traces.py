"""Traces: who asks for one can download it, while there is room."""

import json

import pytest

from server.serving import PENS, serving
from unmask.server.traces import Sheet, TooLong, TraceFormat, TraceStore


class Lines:
    """A trace format for tests: a line per step, and one for the end."""

    def __init__(self, stream, request):
        self.stream = stream
        self._write({"canvas": request.canvas.tolist()})

    def see(self, step, row):
        self._write({"forward": int(step.forward[row]), "tokens": step.tokens[row].tolist()})

    def close(self, result):
        self._write({"nfe": result and result.nfe})

    def _write(self, record):
        self.stream.write(json.dumps(record).encode() + b"\n")


LINES = TraceFormat(Lines, "application/jsonl", ".trace.jsonl")


def test_a_trace_has_every_step_of_its_row():
    with serving("--batch-size", 2, traces=LINES) as running, running.http as http:
        found = running.chat(trace=True, n=2, length=16).json()
        plain = running.chat(length=16).json()
        for choice in found["choices"]:
            response = http.get(f"/v1/traces/{choice['unmask']['trace']}")
            assert response.headers["content-type"] == "application/jsonl"
            assert response.headers["content-disposition"].endswith('.trace.jsonl"')
            first, *steps, last = map(json.loads, response.text.splitlines())
            assert len(first["canvas"]) == 19 + 16
            assert [step["forward"] for step in steps] == list(range(found["usage"]["nfe"] // 2))
            assert last == {"nfe": choice["unmask"]["nfe"]}
        assert plain["choices"][0]["unmask"]["trace"] is None
        assert http.get("/v1/traces/unknown").status_code == 404
        assert running.service.traces.size > 0


def test_a_stream_names_its_trace_at_the_end_also_where_a_stop_string_ends_it():
    with serving(traces=LINES) as running, running.http as http:
        last = running.stream(PENS, trace=True, stop="15", rule="confidence | ar(2)")[-1]
        name = last["choices"][0]["unmask"]["trace"]
        *_, step, end = http.get(f"/v1/traces/{name}").text.splitlines()
    assert json.loads(end) == {"nfe": None}
    assert json.loads(step)["forward"] + 1 == last["choices"][0]["unmask"]["nfe"]


def test_a_trace_that_is_too_long_is_left_out_and_the_answer_is_not():
    with serving(traces=LINES) as running:
        running.service.traces.most_bytes_each = 1000
        found = running.chat(trace=True).json()
        assert found["choices"][0]["message"]["content"].endswith("#### 10")
        assert found["choices"][0]["unmask"]["trace"] is None
        assert running.service.traces.size == 0


def test_a_trace_that_fails_fails_its_own_request():
    class Broken(Lines):
        def see(self, step, row):
            raise ZeroDivisionError

    with serving(traces=TraceFormat(Broken, "x/y", "")) as running:
        assert running.chat(trace=True).status_code == 500
        assert running.chat().status_code == 200


def test_without_a_format_there_are_no_traces(embedded):
    assert embedded.chat(trace=True).json()["error"]["message"] == "this server keeps no traces"
    with embedded.http as http:
        assert http.get("/v1/traces/x").status_code == 404


def test_the_store_lets_go_of_what_was_not_read_for_longest():
    store = TraceStore(most_bytes=30)
    for name in "abc":
        store.put(name, b"x" * 10)
    assert store.get("a")
    store.put("d", b"x" * 10)
    assert [name for name in "abcd" if store.get(name)] == ["a", "c", "d"]
    assert store.size == 30
    store.put("e", b"x" * 31)
    assert store.get("e") is None
    assert store.size == 0


def test_a_sheet_does_not_outgrow_its_size():
    sheet = Sheet(10)
    sheet.write(b"x" * 10)
    with pytest.raises(TooLong):
        sheet.write(b"y")
