"""`unmask run` as a person meets it: one prompt, a file of them, masks, a live canvas."""

import io
import json
import re
import sys

import pytest

import unmask
from checkpoints import make_llada, make_sdar
from unmask import generate as generate_module
from unmask.cli import main
from unmask.models.load import load

RULE = "confidence | swd(5) | eb(3)"
PROMPTS = ["Hello", "What is 2 + 2?", "a longer prompt than the others", "x", "Grüße, 你好"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_llada(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def run(folder, capsys):
    def call(*arguments, model=folder, length=16):
        size = () if length is None or "--infill" in arguments else ("--length", str(length))
        code = main(["run", *arguments, "--model", str(model), "--rule", RULE, *size])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def in_file(tmp_path):
    def write(*lines, name="in.jsonl"):
        file = tmp_path / name
        file.write_text("".join(x if isinstance(x, str) else json.dumps(x) + "\n" for x in lines))
        return str(file)

    return write


def answers(file):
    """The lines of an output by their id, without what the clock says."""
    lines = [json.loads(line) for line in file.read_text().split("\n")[:-1]]
    assert all(line.pop("seconds") for line in lines)
    assert len({line["id"] for line in lines}) == len(lines)
    return {line["id"]: line for line in lines}


def as_json(run, *arguments, **more):
    code, out, err = run(*arguments, "--json", **more)
    assert (code, err, out.count("\n")) == (0, "", 1)
    return json.loads(out)


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
        r"NFE \d+; 16 tokens; [\d.]+ tokens/forward nominal, [\d.]+ effective; "
        r"[\d.]+ s: model [\d.]+, decision [\d.]+; cut off: no EOS within 16 tokens\n",
        err,
    )


def test_the_text_is_cut_at_the_first_end_token(run, tmp_path):
    ids = as_json(run, "Hello")["ids"]
    end = next(i for i in range(2, 16) if ids[i] not in ids[:i])
    ending = make_llada(tmp_path / "ending", eos_token_id=ids[end])
    found = as_json(run, "Hello", model=ending)
    assert found["ids"] == ids[:end]
    assert (found["tokens"], found["eos_found"], found["cut_off"]) == (end, True, False)
    assert found["nfe_eos"] <= found["nfe"]
    _, _, err = run("Hello", model=ending)
    assert f"until EOS); {end} tokens before EOS" in err
    assert "cut off" not in err


def test_json_tells_the_cost_and_the_settings(run, folder):
    found = as_json(run, "Hello", "--seed", "3", "--temperature", "0.5", "--block", "8")
    assert found["tokens_per_forward"]["nominal"] == round(16 / found["nfe"], 3)
    assert found["written"] == found["tokens"] == len(found["ids"]) == 16
    assert (found["eos_found"], found["cut_off"]) == (False, True)
    seconds = found["seconds"]
    assert seconds["total"] == pytest.approx(seconds["model"] + seconds["decision"], abs=1e-5)
    assert min(seconds[name] for name in ("model", "decision")) > 0
    assert 0 <= seconds["kl"] < seconds["decision"]
    settings = found["settings"]
    expected = {"rule": RULE, "block": 8, "length": 16, "eos": "keep", "seed": 3, "cache": "none"}
    assert {key: settings[key] for key in expected} == expected
    assert settings["temperature"] == 0.5
    assert found["model"] == str(folder)
    assert found["version"] == unmask.__version__


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
    found = as_json(run, "Hello", "--cache", "block", model=sdar)
    assert found["ids"] == unmask.decode(model, chat, RULE, length=16).ids
    assert found["settings"]["block"] == 4
    wider = as_json(run, "Hello", "--block", "8", model=sdar)
    assert wider["ids"] == unmask.decode(model.with_block(8), chat, RULE, length=16).ids
    code, _, err = run("Hello", "--block", "full", model=sdar)
    assert (code, err) == (
        2,
        "unmask run: the model attends in blocks of 4; it has no full window\n",
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
    found = as_json(run, "A [MASK*5] and [MASK]<|mdm_mask|>", "--infill")
    assert found["ids"] == result.canvas.tolist()
    assert found["text"] == tokenizer.decode(found["ids"], skip_special=True)
    assert (found["text"][:2], found["written"]) == ("A ", 7)
    assert " and " in found["text"]
    code, out, err = run("A [MASK*5] and [MASK][MASK]", "--infill")
    assert (code, out) == (0, found["text"] + "\n")
    assert "cut off" not in err


def test_watch_prints_a_line_per_step_into_a_pipe(run):
    found = as_json(run, "Hello")
    code, out, err = run("Hello", "--watch")
    lines = out.split("\n")[: found["nfe"]]
    assert code == 0
    assert [int(line[:3]) for line in lines] == list(range(1, found["nfe"] + 1))
    assert sum(int(line.split()[1]) for line in lines) == 16
    assert [line.count("·") for line in lines] == sorted(
        (line.count("·") for line in lines), reverse=True
    )
    assert "·" not in lines[-1]
    assert "\x1b" not in out.replace(found["text"], "")
    assert out.endswith(found["text"] + "\n")
    assert err.startswith("NFE ")


def test_a_file_of_prompts_gives_what_single_runs_give(run, in_file, tmp_path):
    out = tmp_path / "out.jsonl"
    file = in_file(*({"prompt": prompt} for prompt in PROMPTS))
    for size in ("1", "3"):
        code, printed, err = run("--input", file, "--output", str(out), "--batch-size", size)
        assert (code, printed, err) == (0, "", "")
        found = answers(out)
        assert sorted(found) == [1, 2, 3, 4, 5]
        for number, prompt in enumerate(PROMPTS, 1):
            alone = as_json(run, prompt)
            for key in ("text", "ids", "nfe", "nfe_eos", "tokens", "eos_found", "cut_off"):
                assert found[number][key] == alone[key]
        out.unlink()


def test_a_file_of_prompts_is_random_line_by_line_as_its_seeds_say(run, in_file, tmp_path):
    out = tmp_path / "out.jsonl"
    lines = [{"prompt": "Hello"}, {"prompt": "Hello", "id": "b", "seed": 9}, {"prompt": "Hello"}]
    assert run("--input", in_file(*lines), "--output", str(out), "--temperature", "1")[0] == 0
    found = answers(out)
    for name, seed in ((1, 0), ("b", 9), (3, 2)):
        alone = as_json(run, "Hello", "--temperature", "1", "--seed", str(seed))
        assert (found[name]["ids"], found[name]["seed"]) == (alone["ids"], seed)
    assert found[1]["ids"] != found["b"]["ids"]


def test_chats_and_canvases_stand_in_one_file_with_prompts(run, in_file):
    messages = [{"role": "user", "content": "Hello"}]
    file = in_file({"messages": messages}, "\n", {"canvas": "A [MASK*4]."}, {"prompt": "Hello"})
    code, out, err = run("--input", file)
    assert (code, err) == (0, "")
    found = {line["id"]: line for line in map(json.loads, out.split("\n")[:-1])}
    assert found[1]["ids"] == found[4]["ids"] == as_json(run, "Hello")["ids"]
    assert found[3]["ids"] == as_json(run, "A [MASK*4].", "--infill")["ids"]


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
    plain = generate_module.generate

    def counting(model, tokenizer, requests, *rest, **more):
        asked.extend(requests)
        return plain(model, tokenizer, requests, *rest, **more)

    monkeypatch.setattr(generate_module, "generate", counting)
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
    plain = generate_module.generate

    def interrupted(*arguments, **more):
        for number, answer in enumerate(plain(*arguments, **more)):
            if number == 2:
                raise KeyboardInterrupt
            yield answer

    with monkeypatch.context() as patch:
        patch.setattr(generate_module, "generate", interrupted)
        assert run("--input", file, "--output", str(out)) == (130, "", "interrupted\n")
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
    assert f"{file}:1: {out} holds an answer with the id 1 to something else" in err


@pytest.mark.parametrize("text", ["notes\n", "notes", '{"a": 1}\n', '{"id": 1}\n'])
def test_a_file_of_something_else_is_left_alone(run, in_file, tmp_path, text):
    out = tmp_path / "notes.txt"
    out.write_text(text)
    code, _, err = run("--input", in_file({"prompt": "Hello"}), "--output", str(out))
    assert code == 2
    assert err == f"unmask run: {out}:1 is no answer of 'unmask run'; give another --output\n"
    assert out.read_text() == text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{not json\n", "no JSON: "),
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
        ({"prompt": "a", "id": 1}, "the id 1 was given at"),
        ({"prompt": "a", "seed": -1}, "the seed must be a whole number >= 0, got -1"),
        ({"prompt": "a\ud800"}, "the text holds half a character"),
        ({"prompt": "<|mdm_mask|>"}, "already holds mask id 258"),
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "x.jsonl", "--output", "-"], "--output must name a file"),
        (["Hi", "--input", "x"], "--input and PROMPT are given"),
        (["--input", "nowhere.jsonl"], "nowhere.jsonl cannot be read: No such file or directory"),
        (["--input", "x", "--watch"], "--watch shows a single prompt"),
        (["Hi", "--watch", "--json"], "give one of them"),
        (["Hi", "--output", "x"], "--output is for the answers to --input"),
        (["Hi", "--infill", "--length", "3"], "takes no --length"),
        (["Hi", "--infill"], "the text holds no [MASK] to fill"),
        (["Hi", "--cache", "block"], "has full attention; the caches for it are"),
        (["Hi", "--block", "many"], "--block must be a number >= 1, or 'full', got 'many'"),
        (["Hi", "--device", "nowhere"], "device 'nowhere' cannot be used"),
        (["Hi", "--raw", "--system", "x"], "--system goes into a chat"),
        (["Hi", "--batch-size", "0"], "--batch-size must be >= 1, got 0"),
        (["Hi", "--seed", "-1"], "--seed must be >= 0, got -1"),
        (["Hi", "--temperature", "-1"], "temperature must be 0 (greedy), or >= 0.0001"),
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


def test_the_input_is_never_the_output(run, in_file):
    file = in_file({"prompt": "Hello"})
    code, _, err = run("--input", file, "--output", file)
    assert code == 2
    assert "is both --input and --output" in err


# The embedded model


def on_embedded(capsys, *arguments):
    """What is written, and the warnings, in one forward."""
    assert main(["run", *arguments, "--rule", RULE, "--steps", "1"]) == 0
    captured = capsys.readouterr()
    lines = captured.err.split("\n")
    return captured.out, [line for line in lines if line.startswith("warning: ")]


def test_the_embedded_model_is_asked_where_none_is_named(capsys):
    out, warned = on_embedded(capsys, "Repeat: pig, bee.", "--json")
    assert warned == []
    found = json.loads(out)
    assert (found["model"], found["written"]) == ("embedded", 48)
    assert (found["settings"]["dtype"], found["settings"]["chat"]) == ("float32", True)
    named, _ = on_embedded(capsys, "Repeat: pig, bee.", "--json", "--model", "embedded")
    assert json.loads(named)["ids"] == found["ids"]
    assert json.loads(named)["settings"] == found["settings"]


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["Repeat: pig, zyzzyva, bee, quokka, zyzzyva."], "'zyzzyva', 'quokka'"),
        (["Repeat: pig,  bee."], "'  '"),
        ([" Repeat: zyzzyva, [MASK*2].", "--infill"], "'zyzzyva', ' '"),
        (["Repeat: pig, MASK."], "'MASK'"),
    ],
)
def test_words_that_the_model_does_not_know_are_told(capsys, arguments, words):
    _, warned = on_embedded(capsys, *arguments)
    assert warned == [f"warning: embedded does not know {words}"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["<|user|> Repeat: pig,[MASK], bee.<|assistant|>[MASK*8]", "--infill"],
        ["Repeat: pig, bee.", "--length", "110"],
    ],
)
def test_what_the_model_was_made_for_is_not_warned_of(capsys, arguments):
    assert on_embedded(capsys, *arguments)[1] == []


@pytest.mark.filterwarnings("always")
def test_more_positions_than_the_model_was_made_for_are_told(capsys):
    out, warned = on_embedded(capsys, "Repeat: pig.", "--length", "150", "--json")
    assert json.loads(out)["written"] == 150
    assert len(warned) == 1
    assert re.fullmatch(
        r"warning: 1\d\d positions are more than the 128 that embedded was made for", warned[0]
    )


@pytest.mark.filterwarnings("always")
def test_another_models_own_context_counts(run, tmp_path):
    narrow = make_llada(tmp_path / "narrow", max_sequence_length=20)
    _, _, err = run("Hello", "--raw", model=narrow)
    assert err.startswith("warning: 21 positions are more than the 20 that narrow was made for\n")
    assert "warning" not in run("Hell", "--raw", model=narrow)[2]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("text", ["Ann has [MASK] pens", "[MASK*3] pens"])
def test_masks_in_a_prompt_that_is_continued_are_hinted_at_in_one_line(run, text):
    hint = "warning: [MASK] in a prompt is plain text; --infill fills it"
    code, _, told = run(text)
    assert (code, told.splitlines().count(hint)) == (0, 1)
    assert hint not in run(text, "--infill")[2]
    assert hint not in run("Ann has MASK pens")[2]


@pytest.mark.filterwarnings("default")
def test_masks_in_the_prompts_of_a_file_are_hinted_at_once(run, in_file):
    file = in_file({"prompt": "one [MASK]"}, {"prompt": "two [MASK]"}, {"canvas": "a [MASK]"})
    code, out, told = run("--input", file)
    assert (code, out.count("\n")) == (0, 3)
    assert told.count("--infill") == 1
