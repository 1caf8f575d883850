"""`unmask export sglang`: the file, the commands, and what cannot be served."""

from __future__ import annotations

import shlex
from importlib import import_module
from importlib.util import find_spec

import pytest

from tests.checkpoints import EOS, make_llada, make_sdar
from unmask.cli import main
from unmask.errors import UnmaskError
from unmask.integrations.sglang.launch import SERVED

SDAR_MASK = SERVED["SDARForCausalLM"].mask_id
BIG = {"vocab_size": SDAR_MASK + 1, "mask_token_id": SDAR_MASK, "hidden_size": 16}


@pytest.fixture
def export(tmp_path, monkeypatch, capsys):
    """Run the command in a new folder; returns exit code, lines, errors and the file."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main(["export", "sglang", *map(str, arguments)])
        said = capsys.readouterr()
        file = tmp_path / "rule.yaml"
        return code, said.out.splitlines(), said.err, file.read_text() if file.exists() else None

    return run


def test_the_file_holds_the_rule_and_a_command_is_printed_for_each_family(export):
    code, (written, *commands), error, text = export("--rule", "confidence | swd(5) | eb(0.1)")
    assert (code, error) == (0, "")
    assert written == "written: rule.yaml"
    assert text.splitlines()[1:] == ['rule: "confidence | swd(5) | eb(0.1)"']
    assert ["LLaDA2" in command for command in commands] == [True, False]
    assert ["SDAR" in command for command in commands] == [False, True]
    for command in commands:
        words = shlex.split(command)
        assert words[:3] == ["python", "-m", "sglang.launch_server"]
        assert words[-4:] == ["--dllm-algorithm", "Unmask", "--dllm-algorithm-config", "rule.yaml"]


def test_a_recipe_is_spelled_out(export):
    assert 'rule: "confidence | swd(1) | eb(0.1)"' in export("--rule", "swd-block32")[3]


def test_of_a_named_checkpoint_block_and_end_tokens_are_written(export, tmp_path):
    folder = make_sdar(tmp_path / "sdar b8", block_size=8, **BIG)
    code, lines, _, text = export("--model", folder, "--eos", "stop", "--steps", 3, "--seed", 4)
    assert code == 0
    assert text.splitlines()[1:] == [
        'rule: "confidence | threshold(0.85)"',  # recommended for SDAR
        'eos: "stop"',
        "steps: 3",
        "seed: 4",
        "block_size: 8",
        f"eos_id: {EOS}",
        f"stop_ids: [{EOS}]",
    ]
    assert shlex.split(lines[1])[4] == str(folder)
    assert len(lines) == 2


def test_the_usual_block_is_left_to_sglang(export, tmp_path):
    text = export("--model", make_sdar(tmp_path / "tiny", **BIG))[3]
    assert "block_size" not in text
    assert 'eos: "block"' in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rule", "confidence"], "the rule has no selection"),
        (["--rule", "margin | swd({0,1}) | eb(1)"], "give one rule"),
        (["--eos", "last"], "--eos last needs --model, whose files name the end token"),
        (["--steps", 0], "steps must be a whole number >= 1, got 0"),
        (["--seed", -1], "seed must be a whole number >= 0, got -1"),
        (["--top-p", 0.5], "top_p and top_k change nothing at temperature 0"),
        (["--model", "nowhere"], "--model nowhere: no such folder"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(export, arguments, said):
    code, lines, error, text = export(*arguments)
    assert (code, lines, text) == (2, [], None)
    assert said in error
    assert error.count("\n") == 1


def test_what_sglang_cannot_serve_is_refused(export, tmp_path):
    code, _, error, _ = export("--model", make_llada(tmp_path / "llada"))
    assert code == 2
    assert "SGLang decodes LLaDA2MoeModelLM, SDARForCausalLM" in error
    assert "unmask serve" in error
    code, _, error, _ = export("--model", make_sdar(tmp_path / "sdar"))
    assert code == 2
    assert f"has mask token 258, but SGLang uses {SDAR_MASK}" in error


def test_without_sglang_its_algorithm_names_the_extra():
    if find_spec("sglang") is not None:
        pytest.skip("SGLang is installed")
    with pytest.raises(UnmaskError, match=r"pip install 'unmask\[sglang\]'"):
        import_module("unmask.integrations.sglang.algorithm")


def test_parts_of_ones_own_are_named_in_the_file(export, tmp_path):
    (tmp_path / "exported_parts.py").write_text(
        "import unmask\n\n@unmask.selection\ndef all_now(view, scores):\n    return view.masked\n"
    )
    rule = ("--rule", "confidence | all_now")
    code, _, error, text = export(*rule, "--import", "exported_parts.py")
    assert (code, error) == (0, "")
    assert text.splitlines()[1:] == [
        f'imports: ["{tmp_path / "exported_parts.py"}"]',
        'rule: "confidence | all_now"',
    ]
