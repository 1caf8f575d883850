"""The commands of docs/lm-eval.md print what the page shows."""

import re
import runpy
import shlex

import pytest

from tests.paths import ROOT
from unmask.cli import main

pytest.importorskip("lm_eval")
pytestmark = pytest.mark.filterwarnings("default")  # of the harness and what it imports


def commands():
    """Every command of the page with the output that it shows."""
    page = (ROOT / "docs" / "lm-eval.md").read_text()
    for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, shown = re.fullmatch(
                r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL
            ).groups()
            yield shlex.split(command.replace("\\\n", " ")), shown


def run_example(monkeypatch, *arguments):
    file = ROOT / "examples" / "lm_eval_task.py"
    monkeypatch.setattr("sys.argv", [str(file), *map(str, arguments)])
    runpy.run_path(str(file), run_name="__main__")


def test_the_page_of_lm_eval_shows_what_the_commands_print(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lm_eval.evaluator.add_env_info", lambda results: None)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names = []
    for (program, *arguments), shown in commands():
        if program == "python":
            run_example(monkeypatch, *arguments[1:])
        else:
            assert main(arguments) == 0
            assert capsys.readouterr().out == shown
        names.append(program)
    assert names == ["python", "unmask", "unmask"]


def test_the_example_evaluates_two_rules(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("lm_eval.evaluator.add_env_info", lambda results: None)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")
    run_example(monkeypatch, tmp_path, "--run")
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines[::2]] == [
        "confidence | eb(0.1)",
        "confidence | swd(5) | eb(0.1)",
    ]
    assert all(re.search(r": \d\d\.\d% at NFE \d+\.\d$", line) for line in lines[::2])
    assert all(re.search(r"took \d+ forwards$", line) for line in lines[1::2])
