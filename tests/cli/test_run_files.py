"""`unmask run` on a file of prompts: resumed, refused, never mixed up."""

import json

import pytest

from tests.cli.running import PROMPTS, answers, as_json
from unmask.text import session as module


def test_a_file_of_prompts_gives_what_single_runs_give(run, in_file, tmp_path):
    out = tmp_path / "out.jsonl"
    file = in_file(*({"prompt": prompt} for prompt in PROMPTS))
    for size in ("1", "3"):
        code, printed, err = run("--input", file, "--output", str(out), "--batch-size", size)
        assert (code, printed, err) == (0, "", "")
        by_id = answers(out)
        assert sorted(by_id) == [1, 2, 3, 4, 5]
        for number, prompt in enumerate(PROMPTS, 1):
            alone = as_json(run, prompt)
            for key in ("text", "ids", "nfe", "nfe_eos", "tokens", "eos_found", "cut_off"):
                assert by_id[number][key] == alone[key]
        out.unlink()


def test_a_file_of_prompts_is_random_line_by_line_as_its_seeds_say(run, in_file, tmp_path):
    out = tmp_path / "out.jsonl"
    lines = [{"prompt": "Hello"}, {"prompt": "Hello", "id": "b", "seed": 9}, {"prompt": "Hello"}]
    assert run("--input", in_file(*lines), "--output", str(out), "--temperature", "1")[0] == 0
    by_id = answers(out)
    for name, seed in ((1, 0), ("b", 9), (3, 2)):
        alone = as_json(run, "Hello", "--temperature", "1", "--seed", str(seed))
        assert (by_id[name]["ids"], by_id[name]["seed"]) == (alone["ids"], seed)
    assert by_id[1]["ids"] != by_id["b"]["ids"]


def test_chats_and_canvases_stand_in_one_file_with_prompts(run, in_file):
    messages = [{"role": "user", "content": "Hello"}]
    file = in_file({"messages": messages}, "\n", {"canvas": "A [MASK*4]."}, {"prompt": "Hello"})
    code, out, err = run("--input", file)
    assert (code, err) == (0, "")
    by_id = {line["id"]: line for line in map(json.loads, out.split("\n")[:-1])}
    assert by_id[1]["ids"] == by_id[4]["ids"] == as_json(run, "Hello")["ids"]
    assert by_id[3]["ids"] == as_json(run, "A [MASK*4].", "--infill")["ids"]


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.999])
def test_a_run_that_was_killed_in_mid_write_resumes_to_the_same_answers(
    run, in_file, tmp_path, cut, monkeypatch
):
    file, out = in_file(*({"prompt": prompt} for prompt in PROMPTS)), tmp_path / "out.jsonl"
    call = ("--input", file, "--output", str(out), "--batch-size", "2")
    assert run(*call)[0] == 0
    whole, raw = answers(out), out.read_bytes()
    out.write_bytes(raw[: int(len(raw) * cut)])
    kept = out.read_bytes().rpartition(b"\n")[0]
    asked = []
    plain = module.decode_requests

    def counting(model, tokenizer, requests, *rest, **more):
        asked.extend(requests)
        return plain(model, tokenizer, requests, *rest, **more)

    monkeypatch.setattr(module, "decode_requests", counting)
    assert run(*call)[0] == 0
    assert answers(out) == whole
    assert out.read_bytes().startswith(kept)
    assert len(asked) == len(PROMPTS) - (kept.count(b"\n") + 1 if kept else 0)
    before = out.read_bytes()
    assert run(*call) == (0, "", "")
    assert out.read_bytes() == before


def test_an_interrupt_leaves_whole_lines_and_the_rest_for_the_next_call(
    run, in_file, tmp_path, monkeypatch
):
    file, out = in_file(*({"prompt": prompt} for prompt in PROMPTS)), tmp_path / "out.jsonl"
    plain = module.decode_requests

    def interrupted(*arguments, **more):
        for number, answer in enumerate(plain(*arguments, **more)):
            if number == 2:
                raise KeyboardInterrupt
            yield answer

    told = f"unmask run: interrupted; finished answers are in {out}; "
    told += "run the same command again to resume\n"
    with monkeypatch.context() as patch:
        patch.setattr(module, "decode_requests", interrupted)
        assert run("--input", file, "--output", str(out)) == (130, "", told)
    assert len(answers(out)) == 2
    assert run("--input", file, "--output", str(out))[0] == 0
    assert len(answers(out)) == 5


def test_other_settings_do_not_go_into_the_same_file(run, in_file, tmp_path):
    file, out = in_file({"prompt": "Hello"}), tmp_path / "out.jsonl"
    run("--input", file, "--output", str(out))
    before = out.read_bytes()
    code, _, err = run("--input", file, "--output", str(out), "--eos", "stop")
    assert code == 2
    assert err == (
        f"unmask run: {out}:1 was written with other settings (eos was 'keep', now 'stop'); "
        "give those, or another --output\n"
    )
    assert out.read_bytes() == before


def test_an_answer_to_another_prompt_is_not_taken_for_this_one(run, in_file, tmp_path):
    out = tmp_path / "out.jsonl"
    run("--input", in_file({"prompt": "Hello"}), "--output", str(out))
    file = in_file({"prompt": "Goodbye"})
    code, _, err = run("--input", file, "--output", str(out))
    assert code == 2
    assert f"{file}:1: {out} holds an answer with the id 1 to another prompt" in err


@pytest.mark.parametrize("text", ["notes\n", "notes", '{"a": 1}\n', '{"id": 1}\n'])
def test_a_file_of_something_else_is_left_alone(run, in_file, tmp_path, text):
    out = tmp_path / "notes.txt"
    out.write_text(text)
    code, _, err = run("--input", in_file({"prompt": "Hello"}), "--output", str(out))
    assert code == 2
    assert err == f"unmask run: {out}:1 is not an answer of 'unmask run'; give another --output\n"
    assert out.read_text() == text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{not json\n", "not JSON: "),
        ("[1]\n", "a line must hold an object, got list"),
        ({"text": "a"}, "a line needs one of 'prompt', 'messages' and 'canvas', got only 'text'"),
        ({"prompt": "a", "canvas": "b"}, "got 'prompt' and 'canvas'"),
        ({"prompt": 3}, "'prompt' must be a text, got int"),
        ({"messages": []}, "'messages' must be a list"),
        ({"messages": [{"role": "user"}]}, "a message needs the texts 'role' and 'content'"),
        ({"canvas": "no hole"}, "the text holds no [MASK] to fill"),
        ({"canvas": "[MASK*0]"}, "[MASK*0]: write [MASK*N] with N from 1"),
        ({"canvas": f"[MASK*{'9' * 5000}]"}, "9999...999999]: write [MASK*N]"),
        ({"prompt": "a", "id": 1.5}, "the id must be a text or a whole number, got 1.5"),
        ({"prompt": "a", "id": 1}, "the id 1 is already used at"),
        ({"prompt": "a", "seed": -1}, "the seed must be a whole number >= 0, got -1"),
        ({"prompt": "a\ud800"}, "the text holds half a character"),
    ],
)
def test_a_bad_line_is_named_before_anything_is_decoded(run, in_file, tmp_path, line, message):
    file, out = in_file({"prompt": "fine"}, line), tmp_path / "out.jsonl"
    code, printed, err = run("--input", file, "--output", str(out))
    assert (code, printed) == (2, "")
    assert err.startswith(f"unmask run: {file}:2: ")
    assert message in err
    assert err.count("\n") == 1
    assert not out.exists()


def test_the_input_is_never_the_output(run, in_file):
    file = in_file({"prompt": "Hello"})
    code, _, err = run("--input", file, "--output", file)
    assert code == 2
    assert "is both --input and --output" in err


@pytest.mark.filterwarnings("default")
def test_masks_in_the_prompts_of_a_file_are_hinted_at_once(run, in_file):
    file = in_file({"prompt": "one [MASK]"}, {"prompt": "two [MASK]"}, {"canvas": "a [MASK]"})
    code, out, told = run("--input", file)
    assert (code, out.count("\n")) == (0, 3)
    assert told.count("infill fills it") == 1
