"""Tools over HTTP: forced calls, calls that the model chooses, and what is refused."""

from __future__ import annotations

import json
from functools import reduce

import pytest

from tests.checkpoints import CHAT_TEMPLATE, make_llada
from tests.server.serving import serving, text_of

TOOL_TEMPLATE = (
    "{% if tools %}{{ '<|start_header_id|>tools<|end_header_id|>' ~ (tools | tojson) }}{% endif %}"
    "{% for m in messages if m.tool_calls %}{{ m.tool_calls | tojson }}{% endfor %}"
) + CHAT_TEMPLATE
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get current temperature for a given location.",
        "parameters": {
            "type": "object",
            "properties": {"location": {"type": "string", "description": "City and country"}},
            "required": ["location"],
            "additionalProperties": False,
        },
        "strict": True,
    },
}
MAIL = {
    "type": "function",
    "function": {
        "name": "send_email",
        "parameters": {
            "$defs": {"to": {"enum": ["a@b.co", "c@d.co"]}},
            "type": "object",
            "properties": {"to": {"$ref": "#/$defs/to"}},
            "required": ["to"],
        },
    },
}
EVENT = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "date": {"type": "string"},
        "participants": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "date", "participants"],
    "additionalProperties": False,
}
ASKED = [{"role": "user", "content": "What is the weather like in Paris today?"}]


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory):
    """A random byte-level model whose chat template knows tools."""
    folder = make_llada(tmp_path_factory.mktemp("tools") / "t", template=TOOL_TEMPLATE)
    options = ("--length", 96, "--rule", "confidence | top(16)", "--block", 48)
    with serving("--model", folder, *options, "--max-prompt", 4096) as running:
        yield running


def test_the_examples_of_openais_documentation_run(byte_level):
    """Function calling with its second turn, and structured outputs, by the official client."""
    model = byte_level.service.served.name
    with byte_level.openai as client:
        ask = client.chat.completions.create
        reply = ask(model=model, messages=ASKED, tools=[WEATHER], tool_choice="required")
        (call,) = reply.choices[0].message.tool_calls
        assert reply.choices[0].finish_reason == "tool_calls"
        assert reply.choices[0].message.content is None
        assert (call.type, call.function.name) == ("function", "get_weather")
        assert [*json.loads(call.function.arguments)] == ["location"]
        result = {"role": "tool", "tool_call_id": call.id, "content": "14 degrees"}
        second = ask(model=model, messages=[*ASKED, reply.choices[0].message, result])
        assert second.choices[0].finish_reason in ("stop", "length")
        form = {
            "type": "json_schema",
            "json_schema": {"name": "e", "strict": True, "schema": EVENT},
        }
        event = ask(model=model, messages=ASKED, response_format=form)
        assert [*json.loads(event.choices[0].message.content)] == [*EVENT["properties"]]
        any_json = ask(model=model, messages=ASKED, response_format={"type": "json_object"})
        assert isinstance(json.loads(any_json.choices[0].message.content), dict)


def test_a_call_is_of_the_named_function_or_of_any(byte_level):
    named = {"type": "function", "function": {"name": "send_email"}}
    body = byte_level.chat(tools=[WEATHER, MAIL], tool_choice=named, n=2, temperature=1).json()
    for choice in body["choices"]:
        (call,) = choice["message"]["tool_calls"]
        assert call["function"]["name"] == "send_email"
        assert json.loads(call["function"]["arguments"])["to"] in ("a@b.co", "c@d.co")
    nothing = {"type": "function", "function": {"name": "ping"}}
    any_of = byte_level.chat(tools=[nothing, MAIL], tool_choice="required").json()
    (call,) = any_of["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] in ("ping", "send_email")


def test_an_answer_of_a_language_that_fills_its_canvas_is_whole(byte_level):
    """The client raises if JSON ends for its length; the server's block is larger than this."""
    body = byte_level.chat(max_tokens=12, regex="é{6}", logprobs=True).json()
    (choice,) = body["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("é" * 6, "stop")
    spelled = [byte for each in choice["logprobs"]["content"] for byte in each["bytes"]]
    assert bytes(spelled).decode() == "é" * 6


def test_the_arguments_of_a_call_are_an_object_whatever_its_schema_says(byte_level):
    free = {"type": "function", "function": {"name": "f", "parameters": {}}}
    body = byte_level.chat(tools=[free], tool_choice="required").json()
    (call,) = body["choices"][0]["message"]["tool_calls"]
    assert isinstance(json.loads(call["function"]["arguments"]), dict)


def test_a_stream_sends_the_call_and_ends_with_its_reason(byte_level):
    with byte_level.openai as client:
        chunks = [*client.chat.completions.create(
            model=byte_level.service.served.name, messages=ASKED, tools=[WEATHER],
            tool_choice="required", stream=True,
        )]  # fmt: skip
    deltas = [chunk.choices[0].delta for chunk in chunks]
    (call,) = [call for delta in deltas for call in delta.tool_calls or []]
    assert call.index == 0
    assert "location" in json.loads(call.function.arguments)
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert not any(delta.content for delta in deltas)


def test_a_model_that_chooses_is_told_of_the_tools_and_its_calls_are_read(byte_level):
    """A language stands for a model that has learnt to write calls."""
    inner = r'\{"name": "get_weather", "arguments": \{"location": "[A-Z]"\}\}'
    marked = f"So: <tool_call>\n{inner}\n</tool_call>"
    choice = byte_level.chat(tools=[WEATHER], regex=marked).json()["choices"][0]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", "So:")
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "get_weather"
    other = marked.replace("get_weather", "get_time")  # no tool of that name: it is text
    message = byte_level.chat(tools=[WEATHER], regex=other).json()["choices"][0]["message"]
    assert "tool_calls" not in message
    assert message["content"].startswith("So: <tool_call>")
    streamed = byte_level.stream(tools=[WEATHER], regex="No[.]{3}")
    assert text_of(streamed) == "No..."
    told, untold = (
        byte_level.chat(tools=[WEATHER], tool_choice=choice).json()["usage"]["prompt_tokens"]
        for choice in ("auto", "none")
    )
    assert told > untold + len(json.dumps(WEATHER)) / 2


def test_control_tokens_in_calls_and_results_stay_text(byte_level):
    spoiled = {"name": "get_weather", "arguments": '{"location": "<|eot_id|>"}'}
    call = {"id": "call_1", "type": "function", "function": spoiled}
    said = [*ASKED, {"role": "assistant", "tool_calls": [call]}]
    plain = json.loads(json.dumps(said).replace("<|eot_id|>", "(eot...id)"))
    with byte_level.http as http:
        counts = [
            http.post("/v1/chat/completions", json={"messages": each}).json()["usage"]
            for each in (said, plain)
        ]
    assert counts[0]["prompt_tokens"] == counts[1]["prompt_tokens"]  # one token a byte


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"tools": [WEATHER]}, "tools", "knows no tools; force a call with tool_choice"),
        ({"tool_choice": "required"}, "tool_choice", "tool_choice needs tools"),
        (
            {"tools": [MAIL], "tool_choice": {"type": "function", "function": {"name": "x"}}},
            "tool_choice",
            "no tool is named 'x'; known: send_email",
        ),
        ({"tools": [MAIL, MAIL], "tool_choice": "required"}, "tools", "the same name"),
        ({"tools": [{"type": "function"}]}, "tools", "field required"),
        ({"tools": [{"type": "web_search"}]}, "tools", "'function'"),
        ({"tool_choice": {"type": "allowed_tools"}}, "tool_choice", "'function'"),
        ({"tools": [MAIL], "tool_choice": "required", "regex": "a"}, "tool_choice", "give one of"),
        (
            {"tools": [MAIL], "tool_choice": "required", "stream": True, "diffusing": True},
            "diffusing",
            "leave out diffusing or tools",
        ),
        ({"messages": [*ASKED, {"role": "tool", "content": "x"}]}, "messages", "knows no tools"),
        ({"messages": [{"role": "user"}]}, "messages", "needs content"),
        (
            {"guided_json": reduce(lambda inner, _: {"items": inner}, range(600), {})},
            "guided_json",
            "nests",
        ),
        (
            {
                "tools": [
                    {"type": "function", "function": {"name": "f", "parameters": {"not": {}}}}
                ],
                "tool_choice": "required",
            },
            "tools",
            "not is not supported",
        ),
        ({"functions": [{"name": "f"}]}, "functions", "is not supported here"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_what_a_template_without_tools_cannot_do_is_refused_by_name(tiny, fields, param, message):
    with tiny.http as http:
        reply = http.post("/v1/chat/completions", json={"messages": ASKED, **fields})
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["param"] == param
    assert message in reply.json()["error"]["message"]


def test_a_forced_call_needs_no_template_that_knows_tools(tiny):
    body = tiny.chat(tools=[MAIL], tool_choice="required", max_tokens=80).json()
    (call,) = body["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"])["to"] in ("a@b.co", "c@d.co")
