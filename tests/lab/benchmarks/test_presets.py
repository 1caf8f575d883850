"""Prompts: what a preset makes of an example, and that it can say what it is."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from unmask.decoding.options import DecodingOptions
from unmask.errors import UnknownName, UnmaskError
from unmask.lab.benchmarks import BENCHMARKS, Example, Preset
from unmask.lab.benchmarks.preset import filled

PUBLIC = ("humaneval", "mbpp", "mbpp-sanitized", "gsm8k", "math500")
EVERY = [(name, preset) for name, each in BENCHMARKS.items() for preset in each.presets]


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_every_preset_fills_all_its_slots_and_echoes_itself(name, preset, data):
    benchmark = BENCHMARKS[name]
    prompt = benchmark.prompt(benchmark.load(data)[-1], preset)
    assert prompt.messages[-1]["role"] == "user"
    assert "{{" not in json.dumps(asdict(prompt))
    record = json.loads(json.dumps(benchmark.preset(preset).record()))
    assert (record["name"], record["version"]) == (preset, 1)
    assert record["exact"] in ("letter", "reconstructed", "own")


def test_a_result_can_say_how_it_came_about():
    record = BENCHMARKS["gsm8k"].record("official", "dream")
    assert (record["task"], record["version"]) == ("gsm8k", 1)
    assert record["scorers"] == {"unmask": 1, "daedal": 1}
    assert record["preset"]["name"] == "official-dream"
    assert json.dumps(record)


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_the_settings_of_every_preset_are_ones_that_decode(name, preset):
    decoding = BENCHMARKS[name].preset(preset).decoding
    block = decoding.length if decoding.block == "full" else decoding.block
    assert decoding.length % block == 0


def test_public_benchmarks_have_the_presets_of_the_protocol():
    for name in PUBLIC:
        assert list(BENCHMARKS[name].presets) == ["paper", "official", "official-dream", "lm-eval"]


@pytest.mark.parametrize(
    ("name", "length"), [("gsm8k", 512), ("math500", 512), ("humaneval", 256), ("mbpp", 256)]
)
def test_the_papers_preset_prefills_reasoning_and_keeps_the_end_token(name, length, data):
    benchmark = BENCHMARKS[name]
    prompt = benchmark.prompt(benchmark.load(data)[0], "paper")
    assert prompt.prefill == "<reasoning>"
    assert benchmark.preset("paper").decoding == DecodingOptions(length=length, block=32)
    assert len(prompt.messages) == 1


def test_a_family_has_its_own_variant_where_there_is_one():
    gsm8k = BENCHMARKS["gsm8k"]
    assert gsm8k.preset("official", "dream").name == "official-dream"
    assert gsm8k.preset("official", "llada").name == "official"
    assert gsm8k.preset("paper", "dream").name == "paper"


def test_an_unknown_preset_is_named_with_the_known_ones():
    with pytest.raises(UnknownName, match="did you mean 'paper'"):
        BENCHMARKS["gsm8k"].preset("papr")


def test_shots_are_turns_before_the_question(data):
    gsm8k = BENCHMARKS["gsm8k"]
    prompt = gsm8k.prompt(gsm8k.load(data)[5], "official")
    assert [message["role"] for message in prompt.messages] == ["user", "assistant"] * 4 + ["user"]
    assert "Ida has 5 plums" in prompt.messages[-1]["content"]
    assert gsm8k.preset("official").decoding.eos == "last"


def test_mbpps_shots_come_from_its_own_file(data):
    mbpp = BENCHMARKS["mbpp"]
    messages = mbpp.prompt(mbpp.load(data)[0], "lm-eval").messages
    assert [m["content"].count("times_") for m in messages] == [3, 1, 3, 1, 3, 1, 3]
    assert "multiply by 2." in messages[0]["content"]
    assert messages[1]["content"].startswith("\n```python\nK = 2\ndef inner")


def test_a_prompt_with_code_is_prefilled_into_an_open_fence(data):
    humaneval = BENCHMARKS["humaneval"]
    example = humaneval.load(data)[3]
    prompt = humaneval.prompt(example, "official", "dream")
    assert prompt.prefill.endswith(example.fields["prompt"] + "\n")
    assert prompt.prefill.startswith("Here is the completed function:\n```python\n")


def test_slots_are_filled_once():
    assert filled("{{a}} and {{b}}", {"a": "{{b}}", "b": "x"}) == "{{b}} and x"


def test_an_example_without_enough_shots_is_refused():
    preset = Preset("p", "here", "own", DecodingOptions(length=8), turns=(("user", "x"),), shots=2)
    with pytest.raises(UnmaskError, match="shows 2 solved examples, and 'e' has 0"):
        preset.prompt(Example("e", 0, {}, ""))


def test_plain_text_is_a_prompt_too():
    preset = Preset("p", "here", "own", DecodingOptions(length=8), text="Say {{word}}:")
    prompt = preset.prompt(Example("e", 0, {"word": "yes"}, ""))
    assert (prompt.messages, prompt.text) == ((), "Say yes:")
