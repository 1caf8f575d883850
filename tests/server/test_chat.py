"""Answers through OpenAI's own client: the same texts that `unmask run` prints."""

import pytest
from openai import NotFoundError

from tests.paths import ROOT
from tests.server.serving import PENS, WORDS, run_text, serving, text_of

BLOCKS = ["--rule", "swd-block32"]


def user(text):
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize("prompt", WORDS)
def test_the_official_client_gets_the_text_of_run(embedded, capsys, prompt):
    expected = run_text(capsys, prompt)
    with embedded.openai as client:
        whole = client.chat.completions.create(model="embedded", messages=user(prompt))
        stream = client.chat.completions.create(
            model="embedded", messages=user(prompt), stream=True
        )
        deltas = [chunk.choices[0].delta.content or "" for chunk in stream]
    assert whole.choices[0].message.content == expected["text"]
    assert "".join(deltas) == expected["text"]


def test_usage_counts_tokens_and_forwards_of_both_kinds(embedded, capsys):
    expected = run_text(capsys, PENS)
    with embedded.openai as client:
        usage = client.chat.completions.create(model="embedded", messages=user(PENS)).usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (19, expected["tokens"])
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    extra = usage.model_extra
    assert {name: extra[name] for name in ("nfe", "nfe_eos", "written")} == {
        name: expected[name] for name in ("nfe", "nfe_eos", "written")
    }


def test_the_last_chunk_has_the_usage_on_request(embedded):
    with embedded.openai as client:
        chunks = list(
            client.chat.completions.create(
                model="embedded",
                messages=user(PENS),
                stream=True,
                stream_options={"include_usage": True},
            )
        )
        whole = client.chat.completions.create(model="embedded", messages=user(PENS))
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert chunks[-2].choices[0].finish_reason == whole.choices[0].finish_reason == "stop"


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({"rule": "entropy | eb(0.5)", "length": 24}, ["--rule", "entropy | eb(0.5)"]),
        ({"rule": "swd-block32", "max_tokens": 24}, BLOCKS),
        ({"rule": "swd-block32", "length": 24, "block": 8}, [*BLOCKS, "--block", 8]),
        ({"rule": "swd-block32", "length": 24, "block": "full"}, [*BLOCKS, "--block", "full"]),
        ({"eos": "suppress", "max_completion_tokens": 24}, ["--eos", "suppress"]),
        ({"eos": "stop", "steps": 5, "length": 24}, ["--eos", "stop", "--steps", 5]),
        ({"temperature": 1.5, "seed": 7, "length": 24}, ["--temperature", 1.5, "--seed", 7]),
        (
            {"temperature": 1, "top_p": 0.9, "top_k": 5, "tempered": True, "length": 24},
            ["--temperature", 1, "--top-p", 0.9, "--top-k", 5, "--tempered"],
        ),
    ],
    ids=str,
)  # fmt: skip
def test_every_setting_means_what_it_means_to_run(embedded, capsys, fields, options):
    expected = run_text(capsys, PENS, "--length", 24, *options)
    response = embedded.chat(**fields).json()
    assert response["choices"][0]["message"]["content"] == expected["text"]
    assert (response["usage"]["nfe"], response["usage"]["nfe_eos"]) == (
        expected["nfe"],
        expected["nfe_eos"],
    )
    assert response["choices"][0]["finish_reason"] == ("length" if expected["cut_off"] else "stop")
    settings = response["unmask"]
    names = ("rule", "block", "eos", "steps", "temperature", "top_p", "top_k", "length")
    assert {n: settings[n] for n in names} == {n: expected["settings"][n] for n in names}


def test_what_a_request_leaves_open_is_as_the_server_was_started(capsys):
    options = ["--rule", "swd-block32", "--length", 40, "--eos", "suppress", "--seed", 3]
    options += ["--temperature", 0.7]
    expected = run_text(capsys, PENS, *options)
    with serving(*options) as running:
        response = running.chat().json()
    assert response["choices"][0]["message"]["content"] == expected["text"]
    assert (response["unmask"]["block"], response["unmask"]["seed"]) == (32, 3)


def test_a_text_is_continued_as_it_is(embedded, capsys):
    expected = run_text(capsys, " Repeat: pig, bee.", "--raw")
    with embedded.openai as client:
        whole = client.completions.create(model="embedded", prompt=" Repeat: pig, bee.")
        stream = client.completions.create(
            model="embedded", prompt=" Repeat: pig, bee.", stream=True
        )
        pieces = [chunk.choices[0].text for chunk in stream]
    assert whole.choices[0].text == "".join(pieces) == expected["text"]
    assert whole.object == "text_completion"


def test_masks_are_filled_wherever_they_stand(embedded, capsys):
    canvas = "<|user|> Repeat: pig,[MASK], bee.<|assistant|>[MASK*8]"
    expected = run_text(capsys, canvas, "--infill")
    response = embedded.complete(canvas, infill=True).json()
    assert response["choices"][0]["text"] == expected["text"]
    assert response["choices"][0]["finish_reason"] == "stop"
    assert response["usage"]["written"] == 9


def test_a_chat_may_hold_masks_too(embedded, capsys):
    expected = run_text(capsys, "Repeat: pig,[MASK*2].", "--infill", "--chat")
    response = embedded.chat("Repeat: pig,[MASK*2].", infill=True).json()
    assert response["choices"][0]["message"]["content"] == expected["text"]


def test_choices_have_seeds_in_a_row(embedded, capsys):
    response = embedded.chat(n=3, temperature=1.5, seed=4, length=16).json()
    for index, choice in enumerate(response["choices"]):
        options = ("--temperature", 1.5, "--seed", 4 + index, "--length", 16)
        assert choice["index"] == index
        assert choice["message"]["content"] == run_text(capsys, PENS, *options)["text"]
    assert response["usage"]["nfe"] == sum(c["unmask"]["nfe"] for c in response["choices"])
    assert response["usage"]["prompt_tokens"] == 19


def test_choices_are_streamed_side_by_side(embedded):
    fields = {"n": 3, "temperature": 1.5, "seed": 4, "length": 16}
    whole = embedded.chat(**fields).json()
    texts = ["", "", ""]
    for event in embedded.stream(**fields):
        for choice in event["choices"]:
            texts[choice["index"]] += choice["delta"].get("content") or ""
    assert texts == [choice["message"]["content"] for choice in whole["choices"]]


def test_several_prompts_are_answered_in_their_order(embedded):
    response = embedded.complete(["Repeat: pig.", "Sort: 3, 1."], n=2, length=12).json()
    alone = [embedded.complete(p, length=12).json() for p in ("Repeat: pig.", "Sort: 3, 1.")]
    texts = [choice["text"] for choice in response["choices"]]
    assert texts == [alone[i]["choices"][0]["text"] for i in (0, 0, 1, 1)]
    both = sum(reply["usage"]["prompt_tokens"] for reply in alone)
    assert response["usage"]["prompt_tokens"] == both


def test_content_may_come_in_parts(embedded):
    parts = [{"type": "text", "text": PENS[:20]}, {"type": "text", "text": PENS[20:]}]
    with embedded.http as http:
        body = {"messages": [{"role": "user", "content": parts}]}
        response = http.post("/v1/chat/completions", json=body).json()
    assert response["choices"] == embedded.chat().json()["choices"]


def test_what_a_client_sends_back_of_an_answer_is_understood(embedded):
    with embedded.openai as client:
        first = client.chat.completions.create(model="embedded", messages=user(PENS))
        said = first.choices[0].message.model_dump(exclude_unset=True)
        second = client.chat.completions.create(
            model="embedded", messages=[*user(PENS), said, *user("Repeat: pig.")]
        )
    assert second.usage.prompt_tokens > first.usage.total_tokens


@pytest.mark.parametrize("stop", ["15", ["zebra", " Now"], [". Now 1", "#"], "12", "never"])
def test_the_text_ends_before_the_first_stop_string(embedded, stop):
    whole = embedded.chat().json()["choices"][0]["message"]["content"]
    stops = [stop] if isinstance(stop, str) else stop
    cut = min((whole.find(s) for s in stops if s in whole), default=len(whole))
    response = embedded.chat(stop=stop).json()
    assert response["choices"][0]["message"]["content"] == whole[:cut]
    assert response["choices"][0]["finish_reason"] == "stop"
    assert text_of(embedded.stream(stop=stop)) == whole[:cut]


def test_a_stop_string_ends_the_row_early(embedded):
    rule = "confidence | ar(2)"  # from left to right, one at a time
    whole = embedded.chat(rule=rule).json()["usage"]
    cut = embedded.chat(rule=rule, stop=" =").json()["usage"]
    assert whole["nfe"] == 48
    assert (cut["nfe"], cut["completion_tokens"], cut["written"]) == (4, 4, 4)
    assert embedded.service.engine.idle


def test_models_name_what_is_served(embedded):
    with embedded.openai as client:
        (model,) = client.models.list().data
        assert client.models.retrieve("embedded") == model
        with pytest.raises(NotFoundError, match="the model 'gpt' is not served here"):
            client.models.retrieve("gpt")
        with pytest.raises(NotFoundError, match="'embedded' is"):
            client.chat.completions.create(model="gpt", messages=user(PENS))
    assert model.id == "embedded"
    assert model.model_extra["unmask"]["max_length"] == 1024


def test_the_model_may_be_served_under_another_name():
    with serving("--served-model-name", "gpt") as running:
        assert running.chat("Repeat: pig.", model="gpt").json()["model"] == "gpt"
        assert running.chat("Repeat: pig.", model="embedded").status_code == 404


def test_what_the_model_was_not_made_for_is_told(embedded):
    response = embedded.chat("Repeat: zyzzyva.", length=130).json()
    warned = response["unmask"]["warnings"]
    assert "positions are more than the 128 that embedded was made for" in warned[0]
    assert warned[1].startswith("embedded does not know these words: 'zyzzyva'. It does")
    assert embedded.chat().json()["unmask"]["warnings"] == []
    rule = "confidence | swd(5, form=literal) | eb(0.1)"
    (literal,) = embedded.chat(rule=rule).json()["unmask"]["warnings"]
    assert "rewards instability" in literal


def test_a_block_causal_model_keeps_its_blocks(sdar, sdar_folder, capsys):
    options = ("--model", sdar_folder, "--length", 10, "--rule", "confidence | eb(3)")
    expected = run_text(capsys, "Hello", *options)
    response = sdar.chat("Hello").json()
    assert response["choices"][0]["message"]["content"] == expected["text"]
    assert text_of(sdar.stream("Hello")) == expected["text"]
    assert response["unmask"]["block"] == 4
    assert sdar.chat("Hello", block=4).json()["choices"] == response["choices"]
    wrong = sdar.chat("Hello", block=8)
    assert (wrong.status_code, wrong.json()["error"]["message"]) == (
        400,
        "sdar attends in blocks of 4, so it decodes in them, not in blocks of 8; load it with "
        "another block to change both",
    )
    assert "has no full window" in sdar.chat("Hello", block="full").json()["error"]["message"]


QWEN3 = ROOT / "tests" / "golden" / "models-2" / "a2d-qwen3-mdlm-tiny"


def test_arguments_of_the_chat_template_mean_what_they_mean_to_run(capsys):
    options = ["--model", str(QWEN3), "--length", "8"]
    plain = run_text(capsys, "How many?", *options)["text"]
    quiet = run_text(capsys, "How many?", *options, "--template-args", "enable_thinking=false")
    with serving(*options) as running, running.http as http:

        def post(**more):
            body = {"messages": user("How many?"), **more}
            return http.post("/v1/chat/completions", json=body)

        def text(**more):
            return post(**more).json()["choices"][0]["message"]["content"]

        assert text() == plain
        assert text(chat_template_kwargs={"enable_thinking": False}) == quiet["text"] != plain
        unread = post(chat_template_kwargs={"enable_thinkin": False}).json()
        assert "does not use enable_thinkin" in str(unread)
        refused = post(chat_template_kwargs={"messages": []})
        assert refused.status_code == 400
        error = refused.json()["error"]
        assert "chat_template_kwargs: 'messages' is set by the chat itself" in error["message"]
        assert error["param"] == "chat_template_kwargs"
        other = http.post("/v1/completions", json={"prompt": "x", "chat_template_kwargs": {}})
        assert "only chats have it" in other.json()["error"]["message"]


def test_arguments_of_a_request_are_merged_into_the_servers_own_as_in_vllm():
    own = ["--model", str(QWEN3), "--length", "8", "--template-args", "enable_thinking=no"]
    with serving(*own) as running:

        def text(**words):
            reply = running.chat("How many?", chat_template_kwargs=words)
            return reply.json()["choices"][0]["message"]["content"]

        quiet = running.chat("How many?").json()["choices"][0]["message"]["content"]
        assert text() == text(other=1) == text(enable_thinking=False) == quiet
        assert text(enable_thinking=True) != quiet


def test_a_completion_does_not_warn_of_the_servers_own_template_args():
    own = ["--model", str(QWEN3), "--length", "8", "--template-args", "enable_thinking=no"]
    with serving(*own) as running:
        assert running.complete("How many?").json()["unmask"]["warnings"] == []
        assert running.chat("How many?").json()["unmask"]["warnings"] == []
