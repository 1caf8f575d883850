"""The code of docs/transformers.md and its examples run and print what the page shows."""

from __future__ import annotations

import re
import runpy
import shlex

import pytest

from tests.paths import ROOT
from unmask.cli import main

pytest.importorskip("transformers")
pytest.importorskip("diffusers")
pytestmark = pytest.mark.filterwarnings("default")  # of the hosts
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
    exec(compile("\n".join(blocks("py")), "docs/transformers.md", "exec"), {})
    out = capsys.readouterr().out
    assert out.splitlines()[0] == ANSWER
    assert f"```\n{ANSWER}\n```" in PAGE
    assert "torch.Size([1, 34]) tensor([10]) tensor([10]) tensor([1.4000])" in out


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
def test_the_examples_run(arguments, expected, capsys, monkeypatch, own_modules):
    script, *more = arguments
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("sys.argv", [script, *more])
    runpy.run_path(str(ROOT / "examples" / script), run_name="__main__")
    assert re.search(expected, capsys.readouterr().out)
