"""The numbers of /metrics and /health."""

import re

from tests.server.serving import serving


def numbers(text):
    """The samples of the text format by name and labels."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_requests_rows_forwards_and_tokens_are_counted():
    with serving("--batch-size", 4) as running, running.http as http:
        nfe = running.chat(n=2, length=16).json()["usage"]["nfe"]
        running.stream(length=16)
        running.chat(rule="nothing")
        http.get("/v1/models/other")
        http.get("/anything/else")
        response = http.get("/metrics")
        values = numbers(response.text)
        assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
        chat = 'route="/v1/chat/completions"'
        assert values[f'unmask_requests_total{{{chat},status="200"}}'] == 2
        assert values[f'unmask_requests_total{{{chat},status="400"}}'] == 1
        assert values['unmask_requests_total{route="/v1/models",status="404"}'] == 1
        assert values['unmask_requests_total{route="?",status="404"}'] == 1
        assert values["unmask_rows_finished_total"] == 3
        assert values["unmask_tokens_total"] == 48
        assert values["unmask_row_forwards_total"] == nfe * 3 / 2
        assert values["unmask_forwards_total"] == nfe
        assert (values["unmask_rows"], values["unmask_queue_length"]) == (0, 0)
        assert values[f"unmask_request_seconds_count{{{chat}}}"] == 3
        assert values[f"unmask_first_text_seconds_count{{{chat}}}"] == 1
        assert values["process_resident_memory_bytes"] > 1e6


def test_every_metric_is_explained(embedded):
    with embedded.http as http:
        text = http.get("/metrics").text
    names = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    assert names == set(re.findall(r"^# HELP (\S+) \S", text, re.MULTILINE))
    assert {"unmask_rows", "unmask_requests_total", "unmask_request_seconds"} <= names


def test_health_tells_how_many_rows_there_are(embedded):
    with embedded.http as http:
        health = http.get("/health").json()
    assert health.pop("forwards") == embedded.service.engine.counts.forwards
    assert health == {
        "status": "ok", "model": "embedded", "rows": 0, "waiting": 0,
        "batch_size": 4, "queue_size": 64, "seconds_since_step": 0.0,
    }  # fmt: skip


def test_the_page_at_the_root_says_what_this_is(embedded):
    with embedded.http as http:
        page = http.get("/")
        assert page.headers["content-type"].startswith("text/html")
        assert "/v1/chat/completions" in page.text
        assert http.get("/static/index.html").text == page.text
