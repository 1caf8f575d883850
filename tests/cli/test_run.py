"""`unmask run` as a person meets it: one prompt, masks, a live canvas, wrong calls."""

import io
import json
import re
import sys

import pytest

import unmask
from tests.checkpoints import make_llada, make_sdar
from tests.cli.running import RULE, as_json
from unmask.cli import main
from unmask.models.load import load
from unmask.rules.spelling import for_file


def test_the_text_is_what_the_library_gives(run, folder):
    model, tokenizer = load(folder)
    chat = tokenizer.encode_chat([{"role": "user", "content": "Hello"}])
    result = unmask.decode(model, chat, RULE, length=16)
    code, out, _ = run("Hello")
    assert code == 0
    assert out == tokenizer.decode(result.ids, skip_special=True) + "\n"


def test_raw_takes_the_prompt_as_it_is(run, folder):
    model, tokenizer = load(folder)
    result = unmask.decode(model, tokenizer.encode("Hello"), RULE, length=16)
    assert as_json(run, "Hello", "--raw")["ids"] == result.ids
    assert as_json(run, "Hello")["ids"] != result.ids


def test_a_model_without_a_template_is_asked_raw(run, tmp_path):
    plain = make_llada(tmp_path / "plain", template=None)
    assert as_json(run, "Hello", model=plain)["ids"] == as_json(run, "Hello", "--raw")["ids"]
    code, _, err = run("Hello", "--chat", model=plain)
    assert code == 2
    assert "has no chat template" in err


def test_the_system_message_comes_first(run, folder):
    model, tokenizer = load(folder)
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    result = unmask.decode(model, tokenizer.encode_chat(chat), RULE, length=16)
    assert as_json(run, "Hello", "--system", "Be brief.")["ids"] == result.ids


def test_the_summary_names_the_cost_and_that_no_end_was_found(run):
    _, _, err = run("Hello")
    assert re.fullmatch(
        r"\d+ forward passes, 16 tokens \([\d.]+ per pass\), [\d.]+ s; "
        r"cut off: no EOS within 16 tokens\n",
        err,
    )
    _, _, err = run("Hello", "--verbose")
    assert re.fullmatch(
        r"NFE \d+; 16 tokens; [\d.]+ tokens/forward nominal, [\d.]+ effective; "
        r"[\d.]+ s: model [\d.]+, decision [\d.]+; cut off: no EOS within 16 tokens\n",
        err,
    )


def test_the_text_is_cut_at_the_first_end_token(run, tmp_path):
    ids = as_json(run, "Hello")["ids"]
    end = next(i for i in range(2, 16) if ids[i] not in ids[:i])
    ending = make_llada(tmp_path / "ending", eos_token_id=ids[end])
    answer = as_json(run, "Hello", model=ending)
    assert answer["ids"] == ids[:end]
    assert (answer["tokens"], answer["eos_found"], answer["cut_off"]) == (end, True, False)
    assert answer["nfe_eos"] <= answer["nfe"]
    _, _, err = run("Hello", "--verbose", model=ending)
    assert f"until EOS); {end} tokens before EOS" in err
    assert "cut off" not in err


def test_verbose_measures_model_decision_and_kl_apart(run):
    seconds = as_json(run, "Hello", "--verbose")["seconds"]
    assert seconds["total"] == pytest.approx(seconds["model"] + seconds["decision"], abs=1e-5)
    assert min(seconds[name] for name in ("model", "decision")) > 0
    assert 0 <= seconds["kl"] < seconds["decision"]


def test_json_tells_the_cost_and_the_settings(run, folder):
    answer = as_json(run, "Hello", "--seed", "3", "--temperature", "0.5", "--block", "8")
    assert answer["tokens_per_forward"]["nominal"] == round(16 / answer["nfe"], 3)
    assert answer["written"] == answer["tokens"] == len(answer["ids"]) == 16
    assert (answer["eos_found"], answer["cut_off"]) == (False, True)
    assert list(answer["seconds"]) == ["total"]
    settings = answer["settings"]
    expected = {
        "rule": for_file(RULE),
        "block": 8,
        "length": 16,
        "eos": "keep",
        "seed": 3,
        "cache": "none",
    }
    assert {key: settings[key] for key in expected} == expected
    assert settings["temperature"] == 0.5
    assert answer["model"] == str(folder)
    assert answer["version"] == unmask.__version__


def test_a_recipe_brings_its_block(run, folder, capsys):
    assert main(["run", "Hi", "--model", str(folder), "--rule", "fast-dllm", "--json"]) == 0
    settings = json.loads(capsys.readouterr().out)["settings"]
    assert (settings["block"], settings["length"]) == (32, 256)
    assert settings["rule"] == "confidence | threshold(0.9, test=ge)"


def test_a_cache_and_guidance_wrap_the_model(run, folder):
    model, tokenizer = load(folder)
    chat = tokenizer.encode_chat([{"role": "user", "content": "Hello"}])
    cached = unmask.decode(unmask.Cached(model, "dual"), chat, RULE, length=16, block=8)
    assert as_json(run, "Hello", "--cache", "dual", "--block", "8")["ids"] == cached.ids
    guided = unmask.decode(unmask.Guided(model, 1.5), chat, RULE, length=16)
    assert as_json(run, "Hello", "--guidance", "1.5")["ids"] == guided.ids
    assert as_json(run, "Hello", "--guidance", "1.5", "--cache", "dual")["nfe"] > 0


def test_a_block_causal_model_keeps_its_blocks_unless_told(run, tmp_path):
    sdar = make_sdar(tmp_path / "sdar")
    model, tokenizer = load(sdar)
    chat = tokenizer.encode_chat([{"role": "user", "content": "Hello"}])
    answer = as_json(run, "Hello", "--cache", "block", model=sdar)
    assert answer["ids"] == unmask.decode(model, chat, RULE, length=16).ids
    assert answer["settings"]["block"] == 4
    wider = as_json(run, "Hello", "--block", "8", model=sdar)
    assert wider["ids"] == unmask.decode(model.with_block(8), chat, RULE, length=16).ids
    code, _, err = run("Hello", "--block", "full", model=sdar)
    assert (code, err) == (
        2,
        "unmask run: sdar attends in blocks of 4, so it has no full window; give the block as a "
        "number, or leave it out\n",
    )


@pytest.mark.parametrize("prompt", [(), ("-",)])
def test_the_prompt_comes_through_a_pipe(run, prompt, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("Hello\n"))
    assert as_json(run, *prompt)["ids"] == as_json(run, "Hello")["ids"]


def test_infill_fills_the_masks_and_nothing_else(run, folder):
    model, tokenizer = load(folder)
    mask = model.spec.mask_id
    canvas = [*tokenizer.encode("A "), *[mask] * 5, *tokenizer.encode(" and "), mask, mask]
    result = unmask.infill(model, canvas, RULE)
    answer = as_json(run, "A [MASK*5] and [MASK]<|mdm_mask|>", "--infill")
    assert answer["ids"] == result.canvas.tolist()
    assert answer["text"] == tokenizer.decode(answer["ids"], skip_special=True)
    assert (answer["text"][:2], answer["written"]) == ("A ", 7)
    assert " and " in answer["text"]
    code, out, err = run("A [MASK*5] and [MASK][MASK]", "--infill")
    assert (code, out) == (0, answer["text"] + "\n")
    assert "cut off" not in err


def test_watch_prints_a_line_per_step_into_a_pipe(run):
    answer = as_json(run, "Hello")
    code, out, err = run("Hello", "--watch")
    lines = out.split("\n")[: answer["nfe"]]
    assert code == 0
    assert [int(line[:3]) for line in lines] == list(range(1, answer["nfe"] + 1))
    assert sum(int(line.split()[1]) for line in lines) == 16
    assert [line.count("·") for line in lines] == sorted(
        (line.count("·") for line in lines), reverse=True
    )
    assert "·" not in lines[-1]
    assert "\x1b" not in out.replace(answer["text"], "")
    assert out.endswith(answer["text"] + "\n")
    assert " forward passes, 16 tokens (" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "x.jsonl", "--output", "-"], "--output must name a file"),
        (["Hi", "--input", "x"], "--input and PROMPT are given"),
        (["--input", "nowhere.jsonl"], "nowhere.jsonl cannot be read: No such file or directory"),
        (["--input", "x", "--watch"], "--watch shows a single prompt"),
        (["Hi", "--watch", "--json"], "give one of them"),
        (["Hi", "--speed", "4"], "--speed is the speed of --watch; give both"),
        (["Hi", "--watch", "--speed", "-1"], "--speed must be a number from 0 to 1000, got -1.0"),
        (["Hi", "--output", "x"], "--output needs --input"),
        (["Hi", "--infill", "--length", "3"], "takes no --length"),
        (["Hi", "--infill"], "the text holds no [MASK] to fill"),
        (["Hi", "--cache", "block"], "has full attention; the caches for it are"),
        (["Hi", "--block", "many"], "--block must be a whole number >= 1 or 'full', got 'many'"),
        (["Hi", "--device", "nowhere"], "device 'nowhere' cannot be used"),
        (["Hi", "--raw", "--system", "x"], "--system needs a chat"),
        (["Hi", "--batch-size", "0"], "--batch-size must be from 1 to 1048576, got 0"),
        (["Hi", "--seed", "-1"], "--seed must be a whole number >= 0, got -1"),
        (["Hi", "--temperature", "-1"], "--temperature must be a number >= 0, got -1.0"),
        (["", "--raw"], "the prompt is empty"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_2(run, arguments, message):
    code, out, err = run(*arguments, length=None)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_terminal_without_a_prompt_is_told_what_to_give(run, monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", terminal)
    assert run()[2].startswith("unmask run: no prompt; give one, pipe one in,")


def test_a_closed_stdin_is_one_line(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)  # as Python sets it after `<&-`
    for arguments in ((), ("-",)):
        assert run(*arguments)[::2] == (
            2,
            "unmask run: no prompt; give one, pipe one in, or name a file with --input\n",
        )
    assert run("--input", "-")[2].startswith("unmask run: stdin is closed; name a file")


def test_an_empty_prompt_is_not_decoded(run, in_file, tmp_path):
    message = "the prompt is empty; give a text of at least one word\n"
    for text in ("", " \n"):
        for more in ((), ("--raw",), ("--system", "Be brief.")):
            assert run(text, *more)[::2] == (2, f"unmask run: {message}")
    for line in ({"prompt": " "}, {"messages": [{"role": "user", "content": ""}]}):
        code, _, err = run("--input", in_file({"prompt": "x"}, line))
        assert (code, err) == (2, f"unmask run: {tmp_path}/in.jsonl:2: {message}")


def test_an_answer_stays_in_its_language_and_says_how_it_was_committed(capsys, tmp_path):
    prompt = "Ann has 12 pens. She buys 3, then loses 5. How many now?"
    words = ["run", prompt, "--regex", "#### [0-9]+", "--json", "--logprobs", "2"]
    assert main(words) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["text"].startswith("#### ")
    assert record["settings"]["language"] == "regex:#### [0-9]+"
    count = len(record["ids"])
    assert count == len(record["step_map"]) == len(record["logprobs"])
    assert [len(top) for top in record["top_logprobs"]] == [2] * count
    assert record["prompt_ids"]
    (tmp_path / "s.json").write_text('{"type": "string"}')
    assert main(["run", prompt, "--schema", str(tmp_path / "s.json")]) != 0
    assert "holds no answer that this model can write" in capsys.readouterr().err
    assert main(["run", prompt, "--logprobs", "2"]) != 0
    assert "give --json or --input" in capsys.readouterr().err
