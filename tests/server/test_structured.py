"""Languages, log-probabilities and step maps over HTTP."""

from __future__ import annotations

import math

import pytest

from tests.server.serving import PENS


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
