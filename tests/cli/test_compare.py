"""`unmask compare`, as it is called."""

import json
import shlex

import pytest

from unmask.cli import main
from unmask.trace import Trace

RULES = ["confidence | top(12)", "confidence | swd(5) | eb(0.1)"]
SMALL = ["--task", "words", "--length", "24", "--block", "full", "--limit", "6"]


@pytest.fixture
def call(tmp_path, capsys):
    def call(*arguments):
        code = main(["compare", *arguments, "--store", str(tmp_path / "lab.sqlite")])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_one_screen_tells_the_outcome_and_why(call, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = call(*RULES, *SMALL, "--output", "page")
    assert code == 0
    assert out.startswith("words, 6 examples, 24 tokens, full window, EOS keep, model embedded\n")
    assert "* McNemar's exact p" in out
    assert "cannot be told apart" in out or "examples than" in out
    assert "run the same command again to resume" in out
    written = {file.name for file in (tmp_path / "page").iterdir()}
    assert written == {
        "accuracy-forwards.svg", "accuracy-forwards.png", "compare.md", "compare.json",
        "compare.html",
    }  # fmt: skip
    record = json.loads((tmp_path / "page" / "compare.json").read_text())
    assert [row["rule"] for row in record["settings"]] == RULES
    assert "Examples that tell the rules apart" in (tmp_path / "page" / "compare.html").read_text()
    command = shlex.split(record["disagreements"][0]["command"])
    assert command[:2] == ["unmask", "compare"]
    assert main([*command[1:], "--store", str(tmp_path / "lab.sqlite")]) == 0
    lines = capsys.readouterr().out.splitlines()
    page = next(line for line in lines if line.startswith("see: unmask page "))
    traces = [Trace.read(tmp_path / file) for file in page.split()[3:]]
    assert len(traces) == 2
    assert [str(trace.rule) for trace in traces] == RULES


def test_json_is_all_that_is_printed(call):
    code, out, _ = call(*RULES, *SMALL, "--json")
    assert code == 0
    assert json.loads(out)["against_the_first"][0]["rule"] == RULES[1]


def test_wrong_calls_are_one_line(call):
    for arguments, message in (
        ([*RULES, *SMALL, "--trace", "x"], "--trace needs --example NAME"),
        ([*RULES, *SMALL, "--example", "words/999"], "unknown example 'words/999'"),
        (["confidense | top(1)", *SMALL], "did you mean 'confidence'"),
    ):
        code, _, err = call(*arguments)
        assert code == 2
        assert message in err
        assert err.count("\n") == 1
