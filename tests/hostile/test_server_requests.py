"""Requests made to break the server: each is answered, and none with a server error."""

import itertools
import json
import random

import pytest

from tests.server.serving import serving
from unmask.rules.registry import kinds

pytestmark = pytest.mark.hostile

EXTREME = ("1e300", "-1e300", "1e-300", "nan", "inf", "1e400", "4097")
FORMS = {
    "window": "{} | confidence | top(1)",
    "candidates": "confidence | {} | top(1)",
    "logits": "{} | confidence | top(1)",
    "score": "{} | top(1)",
    "modulate": "confidence | {} | top(1)",
    "select": "confidence | {}",
    "limit": "confidence | top(1) | {}",
    "revoke": "confidence | top(1) | {}",
}
ODD = (None, True, -1, 0, 1e308, 2**70, "", "\u0000", "nan", [], [[]], {}, {"a": [1]}, "[MASK*9]")


@pytest.fixture(scope="module")
def hostile_server():
    with serving("--max-seconds", 2) as running:
        yield running


def test_no_value_of_a_knob_is_a_server_error(hostile_server):
    tried, refused = 0, 0
    with hostile_server.http as http:
        for kind in kinds():
            for argument, at in itertools.product(kind.arguments, range(3)):
                value = EXTREME[(tried + 2 * at) % len(EXTREME)]
                part = f"{kind.name}({argument.name}={value})"
                body = {"prompt": "pig", "length": 2, "rule": FORMS[kind.stage].format(part)}
                body |= {"trace": tried % 5 == 0, "temperature": 0.5 * (tried % 7 == 0)}
                response = http.post("/v1/completions", json=body)
                assert response.status_code in (200, 400), (body, response.text)
                tried, refused = tried + 1, refused + (response.status_code == 400)
    assert tried > 100
    assert refused > 40
    assert hostile_server.service.health()["status"] == "ok"


def test_no_field_is_a_server_error(hostile_server):
    fields = [
        "rule", "length", "max_tokens", "block", "eos", "steps", "seed", "temperature", "top_p",
        "top_k", "tempered", "infill", "n", "stop", "stream", "stream_options", "diffusing",
        "trace", "model", "metadata", "logit_bias", "messages", "prompt",
    ]  # fmt: skip
    draw, statuses = random.Random(17), []
    with hostile_server.http as http:
        for _ in range(150):
            route = draw.choice(["chat/completions", "completions"])
            given = {"messages": [{"role": "user", "content": "pig"}]}
            body = {**(given if "chat" in route else {"prompt": "pig"}), "length": 2}
            body |= {name: draw.choice(ODD) for name in draw.sample(fields, draw.randint(1, 3))}
            response = http.post(f"/v1/{route}", json=body)
            statuses.append(response.status_code)
            assert response.status_code in (200, 400, 404), (body, response.text)
    assert {200, 400} <= set(statuses)
    assert hostile_server.service.health()["status"] == "ok"


HALF, DEEP = "\ud800", {"type": "array", "items": {"enum": ["\ud800"]}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"enum": [HALF]}}}


@pytest.mark.parametrize(
    "fields",
    [
        {"chat_template_kwargs": {"self": 1}},
        {"chat_template_kwargs": {"environment": 1, "context": [], "args": {}}},
        {"guided_json": {"enum": [HALF]}},
        {"guided_json": {"type": "object", "properties": {HALF: {}}, "required": [HALF]}},
        {"structured_outputs": {"json": DEEP}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": DEEP}}},
        {"tools": [TOOL], "tool_choice": "required"},
    ],
    ids=str,
)
def test_no_value_inside_a_free_object_is_a_server_error(hostile_server, fields):
    body = {"messages": [{"role": "user", "content": "pig"}], "length": 2, **fields}
    with hostile_server.http as http:  # httpx would refuse half a character itself
        headers = {"Content-Type": "application/json"}
        response = http.post("/v1/chat/completions", content=json.dumps(body), headers=headers)
    assert response.status_code in (200, 400), response.text
    assert "\n" not in response.json().get("error", {}).get("message", "")
