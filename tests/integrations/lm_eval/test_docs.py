"""The commands of docs/lm-eval.md print what the page shows."""

import os
import re
import shlex
import subprocess
import sys

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


def test_the_page_of_lm_eval_shows_what_the_commands_print(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lm_eval.evaluator.add_env_info", lambda results: None)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names = []
    for (program, *arguments), shown in commands():
        if program == "python":
            subprocess.run([sys.executable, *arguments], check=True, timeout=240)
        else:
            assert main(arguments) == 0
            assert capsys.readouterr().out == shown
        names.append(program)
    assert names == ["python", "unmask", "unmask"]


def test_the_example_evaluates_two_rules(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "lm_eval_task.py", tmp_path, "--run"],
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(tmp_path / "hf"),
        },
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[::2]] == [
        "confidence | eb(0.1)",
        "confidence | swd(5) | eb(0.1)",
    ]
    assert all(re.search(r": \d\d\.\d% at NFE \d+\.\d$", line) for line in lines[::2])
    assert all(re.search(r"took \d+ forwards$", line) for line in lines[1::2])
