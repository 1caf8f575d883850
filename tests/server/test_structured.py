"""Languages, log-probabilities and step maps over HTTP."""

from __future__ import annotations

import json
import math

import pytest

from tests.server.serving import PENS, events_of


def test_the_official_client_gets_json_that_fits_its_schema(embedded):
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer"}}}
    with embedded.openai as client:
        reply = client.chat.completions.create(
            model="embedded", messages=[{"role": "user", "content": PENS}], response_format=form
        )
    assert reply.choices[0].message.content.isdecimal()
    assert reply.choices[0].finish_reason == "stop"


@pytest.mark.parametrize("prefix", ["", "guided_"])
def test_a_choice_and_an_expression_are_kept_with_their_other_names(embedded, prefix):
    chosen = embedded.chat(**{f"{prefix}choice": ["cat dog", "yak"]}).json()
    assert chosen["choices"][0]["message"]["content"] in ("cat dog", "yak")
    matched = embedded.complete(PENS, **{f"{prefix}regex": "( fox){3}"}, n=2, temperature=1).json()
    assert [choice["text"] for choice in matched["choices"]] == [" fox fox fox"] * 2
    assert matched["unmask"]["language"] == "regex:( fox){3}"


def test_structured_outputs_of_vllm_are_kept(embedded, tiny):
    def text(**asked):
        return embedded.complete(PENS, structured_outputs=asked).json()["choices"][0]["text"]

    assert text(regex="( fox){3}") == " fox fox fox"
    assert text(choice=["cat", "yak"]) in ("cat", "yak")
    assert text(json={"type": "integer"}).isdecimal()
    any_json = tiny.complete("Hi", structured_outputs={"json_object": True}).json()
    assert isinstance(json.loads(any_json["choices"][0]["text"]), dict)


def test_a_suffix_stands_behind_the_answer_and_is_not_repeated(tiny, sdar):
    """The model sees both sides; a language spans only what is between them."""
    plain = tiny.complete("One, ", max_tokens=8).json()
    body = tiny.complete("One, ", suffix=", three.", max_tokens=8, step_map=True).json()
    choice = body["choices"][0]
    assert body["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"] + len(", three.")
    assert body["usage"]["written"] == 8
    assert len(choice["unmask"]["ids"]) <= 8
    between = tiny.complete("One, ", suffix=", three.", max_tokens=8, regex="two|2", stream=True)
    assert between.status_code == 200
    text = "".join(e["choices"][0]["text"] for e in events_of(between.text))
    assert text in ("two", "2")
    seen = {
        tiny.complete("One, ", suffix=end, max_tokens=8).json()["choices"][0]["text"]
        for end in ("", ", three.", "!", " and so on")
    }
    assert len(seen) > 1
    for server, fields in ((sdar, {}), (tiny, {"length": "auto"}), (tiny, {"infill": True})):
        error = server.complete("One, [MASK]", suffix=", three.", **fields).json()["error"]
        assert "leave out suffix" in error["message"]


def test_a_stream_ends_with_the_whole_answer_of_its_language(embedded):
    pieces = embedded.stream(regex="#### [0-9]+")
    text = "".join(p["choices"][0]["delta"].get("content", "") for p in pieces if p["choices"])
    assert text.startswith("#### ")
    assert text[5:].isdecimal()


def test_log_probabilities_are_those_of_the_commit(embedded):
    with embedded.openai as client:
        reply = client.chat.completions.create(
            model="embedded", messages=[{"role": "user", "content": PENS}], logprobs=True,
            top_logprobs=2, extra_body={"rule": "confidence | top(1)", "step_map": True},
        )  # fmt: skip
    choice = reply.choices[0]
    content = choice.logprobs.content
    assert "".join(each.token for each in content) == choice.message.content
    assert len(content) == reply.usage.completion_tokens == len(choice.unmask["step_map"])
    for each in content:
        first, second = each.top_logprobs
        assert each.token == first.token  # greedy
        assert each.logprob == first.logprob >= second.logprob
        assert math.exp(first.logprob) + math.exp(second.logprob) <= 1 + 1e-6
    assert len(set(choice.unmask["step_map"])) == len(content)  # one token per forward
    completion = embedded.complete(PENS, logprobs=1).json()["choices"][0]
    words = completion["logprobs"]
    assert "".join(words["tokens"]) == completion["text"]
    assert [len(top) for top in words["top_logprobs"]] == [1] * len(words["tokens"])
    assert words["text_offset"][:2] == [0, len(words["tokens"][0])]
    last = embedded.stream(logprobs=True)[-1]
    assert last["choices"][0]["logprobs"]["content"]
