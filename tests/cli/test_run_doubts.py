"""`unmask run` on the embedded model, and what it warns of."""

import json
import re

import pytest

from tests.checkpoints import make_llada, make_sdar
from tests.cli.running import RULE
from tests.paths import ROOT
from unmask.cli import main
from unmask.embedded import PROMPTS

GPT = ROOT / "tests" / "golden" / "models-2" / "diffugpt-tiny"


def on_embedded(capsys, *arguments):
    """What is written, and the warnings, in one forward."""
    assert main(["run", *arguments, "--rule", RULE, "--steps", "1"]) == 0
    captured = capsys.readouterr()
    lines = captured.err.split("\n")
    return captured.out, [line for line in lines if line.startswith("warning: ")]


def test_the_embedded_model_is_asked_where_none_is_named(capsys):
    out, warned = on_embedded(capsys, "Repeat: pig, bee.", "--json")
    assert warned == []
    answer = json.loads(out)
    assert (answer["model"], answer["written"]) == ("embedded", 48)
    assert (answer["settings"]["dtype"], answer["settings"]["chat"]) == ("float32", True)
    named, _ = on_embedded(capsys, "Repeat: pig, bee.", "--json", "--model", "embedded")
    assert json.loads(named)["ids"] == answer["ids"]
    assert json.loads(named)["settings"] == answer["settings"]


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
    (line,) = warned
    assert line.startswith(f"warning: embedded does not know these words: {words}. It does small")
    assert [prompt in line for prompt in PROMPTS] == [True] * 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["<|user|> Repeat: pig,[MASK], bee.<|assistant|>[MASK*8]", "--infill"],
        ["Repeat: pig, bee.", "--length", "110"],
    ],
)
def test_what_the_model_was_made_for_is_not_warned_of(capsys, arguments):
    assert on_embedded(capsys, *arguments)[1] == []


def test_more_positions_than_the_model_was_made_for_are_not_decoded(capsys):
    for arguments in (["x", "--length", "1000000"], ["x [MASK*99999]", "--infill"]):
        assert main(["run", *arguments]) == 2
        told = (
            r"unmask run: \d+ positions are more than the 128 that embedded was made for; shorten "
        )
        assert re.fullmatch(
            told + r"the prompt .*, or set context to \d+\n", capsys.readouterr().err
        )
    out, warned = on_embedded(
        capsys, "Repeat: pig.", "--length", "150", "--json", "--context", "200"
    )
    assert (json.loads(out)["written"], warned) == (150, [])


def test_another_models_own_context_counts(run, tmp_path):
    narrow = make_llada(tmp_path / "narrow", max_sequence_length=20)
    code, _, err = run("Hello", "--raw", model=narrow)
    told = "unmask run: 21 positions are more than the 20 that narrow was made for;"
    assert (code, err[: len(told)]) == (2, told)
    assert "warning" not in run("Hell", "--raw", model=narrow)[2]


def test_learned_positions_are_a_limit_that_no_context_raises(run):
    code, _, err = run("Hello", "--raw", model=GPT, length=50)
    told = r"unmask run: \d+ positions are more than the 40 .*; shorten the prompt or the answer\n"
    assert (code, bool(re.fullmatch(told, err))) == (2, True)
    code, _, err = run("Hello", "--raw", "--context", "60", model=GPT, length=50)
    assert (code, err) == (
        2,
        "unmask run: context must be at most 40, got 60: diffugpt-tiny has learned that many "
        "positions\n",
    )
    code, _, err = run("Hello", "--raw", "--context", "9", model=GPT, length=8)
    advised = re.search(r"or set context to (\d+)$", err.strip())
    assert code == 2
    assert run("Hello", "--raw", "--context", advised[1], model=GPT, length=8)[0] == 0


@pytest.mark.filterwarnings("always")
def test_a_timetable_longer_than_the_answer_is_told(capsys):
    def warned(*arguments):
        assert main(["run", "Repeat: pig.", "--length", "4", *arguments]) == 0
        return "warning" in (err := capsys.readouterr().err), err.split("\n")[0]

    told = "warning: timesteps(256) spends 256 forwards on 4 tokens; timesteps(4) is enough"
    assert warned("--rule", "dream") == (True, told)
    for enough in (["--rule", "dream", "--steps", "4"], ["--rule", "entropy | timesteps(4)"]):
        assert not warned(*enough)[0]
    assert not warned("--rule", "llada")[0]  # it takes a forward for each token at most


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("text", ["Ann has [MASK] pens", "[MASK*3] pens"])
def test_masks_in_a_prompt_that_is_continued_are_hinted_at_in_one_line(run, text):
    hint = "warning: [MASK] in a prompt is plain text; infill fills it"
    code, _, told = run(text)
    assert (code, told.splitlines().count(hint)) == (0, 1)
    assert hint not in run(text, "--infill")[2]
    assert hint not in run("Ann has MASK pens")[2]


@pytest.mark.filterwarnings("always")
def test_arguments_of_a_template_that_does_not_run_are_told_in_one_line(run, tmp_path):
    def told(*arguments, **more):
        code, _, err = run(*arguments, "--template-args", "enable_thinking=no", **more)
        assert code == 0
        return [line for line in err.splitlines() if "template" in line]

    plain = ["warning: template_args are not used: this prompt is plain text, not a chat"]
    assert told("Hello", "--raw") == plain
    assert told("Hello [MASK*3]", "--infill") == plain
    bare = make_sdar(tmp_path / "bare", template=None)
    assert told("Hello", model=bare) == [
        "warning: template_args are not used: bare has no chat template"
    ]
    assert "not used" not in told("Hello")[0]  # the template runs; it does not use this name
    assert "template" not in run("Hello", "--raw")[2]
