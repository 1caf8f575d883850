"""What the server prints: a line for each answered request, and no more if it is told so."""

import time

import pytest

from unmask.cli.serve import log_to_stderr
from unmask.server.engine import LOG
from unmask.server.metrics import REQUESTS


@pytest.fixture(autouse=True)
def _as_before():
    kept = LOG.handlers, LOG.propagate, LOG.level
    yield
    LOG.handlers, LOG.propagate = kept[:2]
    LOG.setLevel(kept[2])
    REQUESTS.setLevel(0)


def printed(capsys, count):
    """So many lines; a line is printed after its response."""
    text, deadline = "", time.monotonic() + 20
    while text.count("\n") < count and time.monotonic() < deadline:
        text += capsys.readouterr().err
        time.sleep(0.01)
    return text.splitlines()


def test_every_answered_request_is_one_line(embedded, capsys):
    log_to_stderr(requests=True)
    assert embedded.chat("Repeat: pig.").status_code == 200
    with embedded.http as http:
        http.get("/v1/none%0Aat all")
    answered, missing = printed(capsys, 2)
    assert answered.startswith("unmask serve: 127.0.0.1 POST /v1/chat/completions 200 0.")
    assert answered.endswith(" s")
    assert missing.startswith("unmask serve: 127.0.0.1 GET /v1/none%0Aat%20all 404 ")


def test_without_an_access_log_only_failures_are_printed(embedded, capsys):
    log_to_stderr(requests=False)
    embedded.chat("Repeat: pig.")
    LOG.error("a request failed")
    assert capsys.readouterr().err == "unmask serve: a request failed\n"
