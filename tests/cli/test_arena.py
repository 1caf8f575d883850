"""`unmask arena`, as it is called."""

import json

import pytest

from unmask.cli import main

SMALL = ["--only", "eb,swd", "--task", "copy", "--limit", "4", "--length", "16", "--workers", "1"]
MINE = """
import unmask

@unmask.selection(needs=unmask.Needs())
def arena_first(view, scores, k: int = 2):
    "Take the first k masks."
    return view.masked & (view.masked.cumsum(-1) <= k)
"""


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main(["arena", *SMALL, *arguments])
        return code, *capsys.readouterr()

    return call


def test_a_rule_of_ones_own_stands_beside_the_recipes(call, tmp_path):
    (tmp_path / "arena_rules.py").write_text(MINE)
    mine = "confidence | arena_first({1,4})"
    code, out, _ = call(mine, "--import", "arena_rules.py", "--block", "full", "--eos", "keep,last")
    assert code == 0
    assert out.startswith("3 rules in ")
    folder = tmp_path / "unmask-arena"
    record = json.loads((folder / "arena.json").read_text())
    assert [field["field"] for field in record["fields"]] == [
        "copy, full window, EOS kept", "copy, full window, EOS last",
    ]  # fmt: skip
    names = {each["rule"] for each in record["fields"][0]["rules"]}
    assert names == {"eb", "swd", mine}
    assert "arena_first" in (folder / "arena.html").read_text()
    assert "arena_first" in (folder / "img/arena-copy-full-window-eos-kept.svg").read_text()
    assert "| rule | difference |" in (folder / "arena.md").read_text()


def test_the_cost_is_told_before_anything_runs(call, tmp_path):
    code, out, _ = call("--dry-run")
    assert code == 0
    assert "copy, full window: " in out
    assert " s on this machine (cpu, 1 worker), by a trial run of one example" in out
    assert not (tmp_path / "unmask-arena").exists()


def test_wrong_calls_are_one_line(call):
    for arguments, message in (
        (["--eos", "later"], "unknown EOS policy 'later'; did you mean 'last'?"),
        (["--block", "0"], "--block must be a whole number >= 1 or 'full'"),
        (["--task", "copi"], "did you mean 'copy'"),
    ):
        code, _, err = call(*arguments)
        assert (code, err.count("\n")) == (2, 1)
        assert message in err
