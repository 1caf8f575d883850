"""The code of docs/transformers.md and its examples run and print what the page shows."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from tests.paths import ROOT
from unmask.cli import main

pytest.importorskip("transformers")
pytest.importorskip("diffusers")
PAGE = (ROOT / "docs" / "transformers.md").read_text()
QUESTION = "Ann has 12 pens. She buys 3, then loses 5. How many now?"
ANSWER = "12 + 3 = 15. 15 - 5 = 10. #### 10"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_of_transformers_runs_from_top_to_bottom(
    tmp_path, monkeypatch, capsys, own_modules
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    (console,) = blocks("console")
    command, _, shown = console.removeprefix("$ ").partition("\n")
    program, *arguments = shlex.split(command)
    assert program == "unmask"
    assert main(arguments) == 0
    assert capsys.readouterr().out == shown
    code = "\n".join(blocks("py"))
    done = subprocess.run(
        [sys.executable, "-c", code], env=own_modules, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == ANSWER
    assert f"```\n{ANSWER}\n```" in PAGE
    assert "torch.Size([1, 34]) tensor([10]) tensor([10]) tensor([1.4000])" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["transformers_generate.py", QUESTION], rf"{re.escape('10. #### 10')}\n10 forwards, 1.40"),
        (
            ["diffusers_pipeline.py", "tests/golden/models/llada2-tiny", "How?", "--length", "16"],
            r"BlockRefinementScheduler, \d+ forwards: .*\nUnmaskScheduler, \d+ forwards: ",
        ),
    ],
    ids=lambda part: part[0] if isinstance(part, list) else "",
)
def test_the_examples_run(arguments, expected, own_modules):
    script, *more = arguments
    done = subprocess.run(
        [sys.executable, f"examples/{script}", *more],
        env=own_modules,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(expected, done.stdout), done.stdout
