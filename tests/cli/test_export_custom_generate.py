"""`unmask export custom-generate`: the files, and what is not overwritten."""

from __future__ import annotations

import runpy
import sys

import pytest

import unmask
from unmask.cli import main
from unmask.rules.registry import TABLE


@pytest.fixture
def export(tmp_path, monkeypatch, capsys):
    """Run the command in a new folder; returns exit code, lines and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main(["export", "custom-generate", *map(str, arguments)])
        said = capsys.readouterr()
        return code, said.out.splitlines(), said.err

    return run


def test_three_files_are_written_and_the_call_is_printed(export, tmp_path):
    code, lines, error = export("swd", "--rule", "confidence | swd(5) | eb(0.1)")
    assert (code, error) == (0, "")
    assert lines == [
        "written: swd/custom_generate/generate.py",
        "written: swd/custom_generate/requirements.txt",
        "written: swd/README.md",
        "model.generate(**inputs, custom_generate='swd', trust_remote_code=True)",
    ]
    needed = (tmp_path / "swd/custom_generate/requirements.txt").read_text().splitlines()[1:]
    assert needed == [f"unmask>={unmask.__version__}"]
    assert "confidence | swd(5) | eb(0.1)" in (tmp_path / "swd/README.md").read_text()


def test_everything_that_is_asked_for_stands_in_the_code(export, tmp_path):
    given = ("--rule", "swd-block32", "--block", "full", "--length", 64, "--eos", "stop")
    given += ("--steps", 16, "--history", 50, "--seed", 7, "--tempered", "--shift")
    given += ("--mask-id", 5, "--attention-block", 4)
    assert export("x", *given)[0] == 0
    code = runpy.run_path(str(tmp_path / "x/custom_generate/generate.py"))
    assert code["OPTIONS"] == {
        "rule": "swd-block32",
        "block": "full",
        "length": 64,
        "eos": "stop",
        "steps": 16,
        "history": 50,
        "seed": 7,
        "mask_id": 5,
        "attention_block": 4,
        "tempered": True,
        "shift": True,
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--rule", "confidenze | top(1)"), "did you mean 'confidence'"),
        (("--block", "many"), "--block must be a whole number >= 1 or 'full', got 'many'"),
        (("--steps", "0"), "steps must be a whole number >= 1, got 0"),
        (("--length", "-3"), "length must be a whole number >= 1 or 'auto', got -3"),
    ],
)
def test_bad_options_are_one_line_and_write_nothing(export, tmp_path, given, message):
    code, lines, error = export("x", *given)
    assert (code, lines) == (2, [])
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_a_checkpoints_readme_is_left_alone_and_our_own_files_are_renewed(export, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model/README.md").write_text("the card of a model")
    assert export("model")[0] == export("model", "--rule", "eb")[0] == 0
    assert (tmp_path / "model/README.md").read_text() == "the card of a model"
    assert "'eb'" in (tmp_path / "model/custom_generate/generate.py").read_text()


def test_somebody_elses_code_is_not_overwritten(export, tmp_path):
    theirs = tmp_path / "x/custom_generate/generate.py"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("def generate(model): ...")
    code, _, error = export("x")
    assert code == 2
    assert "was not written by unmask; give another folder, or delete the file" in error
    assert theirs.read_text() == "def generate(model): ..."


def test_parts_of_ones_own_are_imported_by_the_code(export, tmp_path):
    file = tmp_path / "generated_parts.py"
    file.write_text(
        "import unmask\n\n@unmask.selection\ndef all_now(view, scores):\n    return view.masked\n"
    )
    given = ("--rule", "confidence | all_now", "--import", "generated_parts.py")
    assert export("x", *given)[0] == 0
    TABLE.pop("all_now")
    sys.modules.pop("generated_parts")
    runpy.run_path(str(tmp_path / "x/custom_generate/generate.py"))
    assert str(unmask.Rule.parse("confidence | all_now")) == "confidence | all_now"
