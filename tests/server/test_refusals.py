"""Refused requests: their errors, and that other requests are answered as before."""

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from openai import AuthenticationError, BadRequestError, OpenAI, RateLimitError

from tests.server.serving import PENS, Gate, serving
from unmask.cli import parser
from unmask.cli.serve import served_model
from unmask.errors import RequestError
from unmask.models.tokenizer import Tokenizer
from unmask.server import service
from unmask.server.guard import Guard
from unmask.server.limits import RequestLimits
from unmask.server.prepare import prepare

USER = [{"role": "user", "content": "Repeat: pig."}]


def refused(response, status=400):
    """The error of a response, which has OpenAI's shape."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    (error,) = response.json().values()
    assert set(error) == {"message", "type", "param", "code"}
    return error


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"rule": "conf | eb(0.1)"}, "rule", "did you mean 'confidence'?"),
        ({"rule": "confidence | eb(-1)"}, "rule", "eb: gamma must be >= 0, got -1"),
        ({"rule": "confidence | pc(1, background=/etc/passwd) | top(1)"}, "rule", "names a file"),
        ({"rule": "adablock(198) | confidence | top(1)"}, "rule", "cannot set ids"),
        ({"rule": "confidence | pc(0.25, background=x.npy) | top(1)"}, "rule", "names a file"),
        ({"rule": "{a,b}" * 80}, "rule", "braces stand for several"),
        ({"rule": "paper-table1"}, "rule", "is a sweep of 6 rules"),
        ({"rule": "confidence | timesteps(1000000)"}, "rule", "steps must be <= 4096"),
        ({"rule": "confidence | klass(0.9, n=1000)"}, "rule", "looks back 1000 forwards"),
        ({"rule": "confidence | revoke(1, times=100000)"}, "rule", "times must be <= 4096"),
        ({"rule": "confidence" + "| certainty" * 9 + "| top(1)"}, "rule", "has 11 parts"),
        ({"rule": "x" * 501}, "rule", "at most 500 characters"),
        ({"rule": 5}, "rule", "valid string"),
        ({"rulez": "swd"}, "rulez", "unknown field 'rulez'; did you mean 'rule'?"),
        ({"\ud800": 1}, None, "the body has a field name with half a character"),
        ({"\x00é": 1}, "\\x00\\xe9", "unknown field '\\x00\\xe9'"),
        ({"length": 1025}, "length", "1025 tokens to write; this server writes at most 1024"),
        ({"max_tokens": 1025}, "max_tokens", "this server writes at most 1024"),
        ({"length": 0}, "length", "greater than or equal to 1"),
        ({"length": 2.5}, "length", "valid integer"),
        ({"length": "8"}, "length", "valid integer"),
        ({"length": 8, "max_tokens": 9}, "length", "give one length, got length 8, max_tokens 9"),
        ({"block": "half"}, "block", "'full'"),
        ({"block": 0}, "block", "greater than or equal to 1"),
        ({"block": 100}, None, "block 100 is larger than the answer of 48 positions"),
        ({"eos": "never"}, "eos", "'keep', 'suppress', 'last', 'stop', 'block' or 'fill'"),
        ({"steps": 1, "block": 8}, None, "steps 1 is too few for 6 blocks"),
        ({"seed": -1}, "seed", "greater than or equal to 0"),
        ({"seed": 2**63}, "seed", "less than"),
        ({"temperature": 1e-9}, None, "temperature must be 0 (greedy), or >= 0.0001"),
        ({"temperature": -1}, "temperature", "greater than or equal to 0"),
        ({"top_p": 0.5}, None, "top_p and top_k change nothing at temperature 0"),
        ({"n": 9}, "n", "9 choices; this server allows at most 8"),
        ({"n": 0}, "n", "greater than or equal to 1"),
        ({"stop": ""}, "stop", "at least 1 character"),
        ({"stop": ["x"] * 17}, "stop", "at most 16 items"),
        ({"infill": True}, None, "the text holds no [MASK] to fill"),
        ({"infill": True, "max_tokens": 5}, "max_tokens", "so it takes no max_tokens"),
        ({"diffusing": True}, "diffusing", "needs stream"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "needs stream"),
        ({"top_logprobs": 3}, "top_logprobs", "top_logprobs needs logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "less than or equal to 20"),
        ({"step_map": True, "stop": "."}, "step_map", "leave out stop"),
        ({"regex": "a", "choice": ["b"]}, "choice", "give one of regex and choice"),
        ({"regex": "(a"}, None, "cannot be used as a regular expression"),
        ({"choice": []}, "choice", "at least 1 item"),
        ({"choice": ["Ünique"]}, None, "holds no answer that this model can write"),
        ({"guided_json": {"not": {}}}, None, "not is not supported"),
        ({"structured_outputs": {}}, "structured_outputs", "give one of json, regex, choice"),
        ({"structured_outputs": {"grammar": "x"}}, "structured_outputs", "not permitted"),
        ({"response_format": {"type": "xml"}}, "response_format", "json_schema"),
        ({"response_format": {"type": "json_object"}}, None, "json holds no answer"),
        ({"frequency_penalty": 0.5}, "frequency_penalty", "is not supported here"),
        ({"logit_bias": {"5": 1}}, "logit_bias", "is not supported here"),
        ({"messages": []}, "messages", "at least 1 item"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages", "'system'"),
        ({"messages": [{"role": "system", "content": "x"}]}, None, "knows no role system"),
        ({"messages": USER * 300}, "messages", "at most 256 items"),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, "messages", "valid string"),
        ({"messages": [{"role": "user", "content": " pig" * 200}]}, "messages", "at most 128"),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, dict) else "",
)  # fmt: skip
def test_a_wrong_field_is_named(embedded, fields, param, message):
    with embedded.http as http:
        body = json.dumps({"messages": USER, **fields})
        headers = {"content-type": "application/json"}
        error = refused(http.post("/v1/chat/completions", content=body, headers=headers))
    assert message in error["message"]
    assert (error["param"], error["type"]) == (param, "invalid_request_error")


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        ("[MASK*1025]", "1025 tokens to write; this server writes at most 1024"),
        ("[MASK*1048576]" * 1000, "tokens to write; this server writes at most 1024"),
        ("<|mdm_mask|>" * 1025, "1025 tokens to write; this server writes at most 1024"),
        (f"[MASK*{'9' * 5000}]", "write [MASK*N] with N from 1"),
        ("[MASK*0]", "write [MASK*N] with N from 1"),
    ],
    ids=lambda text: text[:20],
)
def test_a_canvas_of_too_many_masks_is_never_made(embedded, masks, message):
    error = refused(embedded.complete(masks, infill=True))
    assert message in error["message"]
    assert error["param"] == (None if "with N" in message else "prompt")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"5", b"\xff", b"[" * 100000, b'{"a": NaN}'])
def test_a_body_that_is_no_request_is_told_so(embedded, body):
    with embedded.http as http:
        for route in ("chat/completions", "completions"):
            headers = {"content-type": "application/json"}
            response = http.post(f"/v1/{route}", content=body, headers=headers)
            refused(response)


def test_json_without_its_content_type_is_told_which_header_to_send(embedded):
    body = json.dumps({"messages": USER})
    with embedded.http as http:
        for given, named in (
            ({}, "is missing"),
            ({"content-type": "application/x-www-form-urlencoded"}, "is 'application/x-www-form-"),
        ):
            error = refused(http.post("/v1/chat/completions", content=body, headers=given), 415)
            assert error["message"].startswith(f"the header Content-Type {named}")
            assert error["message"].endswith("; send 'Content-Type: application/json'")


def test_a_large_body_is_refused_before_it_is_read(embedded):
    with embedded.http as http:
        error = refused(http.post("/v1/completions", json={"prompt": "x" * 2**18}), 413)
        assert error["code"] == "body_too_large"

        def drip():
            for _ in range(100):
                yield b"x" * 4096

        refused(http.post("/v1/completions", content=drip()), 413)


def test_a_body_that_does_not_come_is_not_waited_for_long():
    async def never():
        await asyncio.Event().wait()

    async def ask():
        sent = []

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "path": "/v1/completions", "method": "POST", "headers": []}
        await Guard(never, RequestLimits(seconds=0.01), None, None)(scope, never, send)
        return sent

    head, body = asyncio.run(ask())
    assert head["status"] == 408
    assert "did not arrive within 0.01 s" in json.loads(body["body"])["error"]["message"]


def test_unknown_routes_and_methods_are_told_in_the_same_way(embedded):
    with embedded.http as http:
        missing = refused(http.get("/v1/nothing"), 404)["message"]
        assert missing.startswith("this server has no GET '/v1/nothing'; it has POST /v1/chat/com")
        assert "GET /v1/models, GET /v1/models/{name}, " in missing
        wrong = refused(http.get("/v1/chat/completions"), 405)["message"]
        assert wrong == "this server has no GET '/v1/chat/completions'; use POST"
        refused(http.post("/nothing", json={}), 404)
        refused(http.get("/static/../app.py"), 404)
        refused(http.get("/static/%2e%2e/app.py"), 404)


def test_the_official_client_raises_what_it_should(embedded):
    with embedded.openai as client, pytest.raises(BadRequestError, match="did you mean 'swd'"):
        client.chat.completions.create(model="embedded", messages=USER, extra_body={"rule": "swdd"})


def test_fields_that_ask_for_nothing_are_taken(embedded):
    neutral = {
        "user": "me", "metadata": {"a": "b"}, "store": False, "logprobs": False, "tools": [],
        "tool_choice": "none", "frequency_penalty": 0, "presence_penalty": 0.0, "logit_bias": {},
        "response_format": {"type": "text"}, "n": 1, "top_p": 1, "temperature": 0, "stop": None,
        "stream": False, "seed": None, "reasoning_effort": "low", "parallel_tool_calls": True,
    }  # fmt: skip
    assert embedded.chat(**neutral).json()["choices"] == embedded.chat().json()["choices"]


# Keys and names


def test_a_key_is_asked_for_everywhere_but_where_nothing_is_told():
    with serving(key="schlüssel ✓") as running, running.http as http:
        for path in ("/v1/models", "/metrics", "/v1/traces/x"):
            error = refused(http.get(path), 401)
            assert (error["type"], error["code"]) == ("authentication_error", "invalid_api_key")
        assert http.get("/v1/models").headers["www-authenticate"] == "Bearer"
        for wrong in ("Bearer schlüssel", "Bearer", "Basic schlüssel ✓", "schlüssel ✓", "Bearer x"):
            refused(http.get("/v1/models", headers={"Authorization": wrong.encode()}), 401)
        refused(http.post("/v1/chat/completions", json={"messages": USER}), 401)
        for path in ("/", "/health", "/openapi.json", "/static/index.html"):
            assert http.get(path).status_code == 200
        right = {"Authorization": "Bearer schlüssel ✓".encode()}
        assert http.get("/v1/models", headers=right).status_code == 200


def test_the_official_client_brings_the_key():
    with serving(key="secret") as running:
        url = f"{running.url}/v1"
        with OpenAI(base_url=url, api_key="secret", max_retries=0) as client:
            assert client.models.list().data[0].id == "embedded"
        with (
            OpenAI(base_url=url, api_key="wrong", max_retries=0) as client,
            pytest.raises(AuthenticationError),
        ):
            client.models.list()


def test_a_loopback_server_answers_to_its_own_names_only():
    with serving("--allow-host", "proxy.example") as running, running.http as http:
        for host in ("localhost", "localhost:8000", "127.0.0.1", "[::1]:8000", "PROXY.example:1"):
            assert http.get("/health", headers={"Host": host}).status_code == 200
        for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""):
            error = refused(http.get("/health", headers={"Host": host}), 421)
            assert error["code"] == "wrong_host"


def test_no_other_page_may_read_an_answer(embedded):
    with embedded.http as http:
        headers = {"Origin": "http://evil.example"}
        response = http.get("/v1/models", headers=headers)
        preflight = http.options("/v1/chat/completions", headers=headers)
    for answer in (response, preflight):
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_the_servers_own_rule_may_look_back_further_than_a_request():
    with serving("--rule", "confidence | klass(0.9, n=70)", "--length", 4) as running:
        assert running.chat().status_code == 200


# No place


def test_a_full_queue_is_429_with_a_time_to_come_again():
    gates = []

    def gate(model):
        gates.append(Gate(model))
        return gates[0]

    with serving("--batch-size", 1, "--queue", 1, wrap=gate) as running:
        with running.openai as client:
            streams = [
                client.chat.completions.create(model="embedded", messages=USER, stream=True)
                for _ in range(2)
            ]
            gates[0].wait()
            response = running.chat()
            error = refused(response, 429)
            assert (error["type"], error["code"]) == ("rate_limit_error", "queue_full")
            assert 1 <= int(response.headers["retry-after"]) <= 60
            with pytest.raises(RateLimitError):
                client.chat.completions.create(model="embedded", messages=USER)
            gates[0].let_all()
            texts = ["".join(c.choices[0].delta.content or "" for c in s) for s in streams]
        assert texts[0] == texts[1] != ""
        assert running.chat().status_code == 200


def test_a_rule_that_fails_in_the_middle_is_told_whole_and_streamed(embedded):
    rule = "confidence | top(1) | revoke(1e-9, times=4000)"
    before = embedded.service.engine.most_forwards
    embedded.service.engine.most_forwards = 60
    try:
        error = refused(embedded.chat(rule=rule))
        assert (error["code"], error["param"]) == ("rule_failed", "rule")
        with embedded.http as http:
            body = {"messages": USER, "rule": rule, "stream": True}
            text = http.post("/v1/chat/completions", json=body).text
    finally:
        embedded.service.engine.most_forwards = before
    *_, last, rest = text.split("\n\n")
    assert rest == ""
    assert json.loads(last.removeprefix("data: "))["error"]["message"] == error["message"]
    with embedded.openai as client:
        answer = client.chat.completions.create(
            model="embedded", messages=[{"role": "user", "content": PENS}]
        )
    assert answer.choices[0].message.content.endswith("#### 10")


def test_a_failure_of_the_server_is_500_and_tells_no_secrets(caplog):
    class Broken(Gate):
        def trunk(self, canvas):
            raise MemoryError("at /secret/place")

    with serving(wrap=Broken) as running:
        error = refused(running.chat(), 500)
        assert error["message"] == "decoding failed: MemoryError"
        assert error["type"] == "server_error"
        assert running.service.health()["status"] == "ok"
    assert "secret" in caplog.text


def test_an_engine_that_fails_leaves_nobody_waiting(caplog):
    with serving() as running:
        engine = running.service.engine

        def broken():
            raise ZeroDivisionError

        engine._fill_batch = broken
        assert refused(running.chat(), 500)["message"] == "decoding failed: ZeroDivisionError"
        assert refused(running.chat(), 503)["code"] == "failed"
        with running.http as http:
            health = http.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "failed")
        assert "the engine failed" in caplog.text


@pytest.mark.long
def test_many_kinds_of_requests_at_once_are_answered_as_if_alone(embedded):
    kinds = [
        {"rule": rule, "length": length, "temperature": t, "seed": seed, "stop": stop}
        for seed, (rule, length, t, stop) in enumerate(
            [
                ("swd", 32, 0.0, None),
                ("swd", 32, 1.0, None),
                ("confidence | top(2)", 20, 0.0, "="),
                ("entropy | eb(0.5)", 40, 0.0, None),
                ("confidence | eb(1) | revoke(0.3)", 24, 0.0, None),
                ("klass", 16, 0.0, None),
                ("random | top(3)", 24, 0.7, None),
                ("dream", 12, 0.0, None),
            ]
        )
    ]
    alone = [embedded.chat(**kind).json()["choices"] for kind in kinds]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda kind: embedded.chat(**kind).json()["choices"], kinds))
    assert together == alone
    assert any(a != b for a, b in pairwise(alone))


# Preparing


def test_a_prompt_far_too_long_is_refused_before_it_is_tokenized(embedded, monkeypatch):
    def no_time_for_this(tokenizer, text):
        raise AssertionError("tokenized")

    monkeypatch.setattr(Tokenizer, "encode", no_time_for_this)
    long = " pig" * 60_000
    for refusal in (embedded.chat(long), embedded.complete(long), embedded.complete(["a", long])):
        error = refused(refusal)
        assert "this server takes at most 2048, which is 16 for each of its 128" in error["message"]


def test_a_request_that_is_prepared_has_a_place_in_the_queue(monkeypatch):
    go = threading.Event()

    def slowly(*arguments):
        assert go.wait(60)
        return prepare(*arguments)

    monkeypatch.setattr(service, "prepare", slowly)
    with serving("--batch-size", 1, "--queue", 3) as running, ThreadPoolExecutor(2) as pool:
        two = [pool.submit(running.chat, n=2) for _ in range(2)]
        deadline = time.monotonic() + 30
        while running.service.health()["waiting"] < 4 and time.monotonic() < deadline:
            time.sleep(0.005)
        assert refused(running.chat(), 429)["code"] == "queue_full"
        go.set()
        assert [each.result().status_code for each in two] == [200, 200]
        assert running.service.health()["waiting"] == 0


def test_a_prompt_may_not_be_longer_than_the_context():
    with pytest.raises(RequestError, match=r"--max-prompt must be <= 128, the model's context"):
        served_model(parser().parse_args(["serve", "--max-prompt", "129"]))
