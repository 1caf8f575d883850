"""The tutorial, from its file with a rule to its report, interrupted once."""

from __future__ import annotations

import json
import re
import signal

from tests.docs.test_commands import commands
from tests.new_process import unmask
from tests.paths import ROOT
from unmask.lab import report
from unmask.lab.report.pictures import plots
from unmask.lab.sweep.store import Store

PAGE = (ROOT / "docs" / "tutorial.md").read_text()
MINE = "calm(0.1) | sure(0.9)"
SMALL = {"--limit": "2"}


def story():
    """The commands of the page by name, on few examples and in one process."""
    named = {}
    for program, name, *arguments in commands("tutorial.md"):
        assert program == "unmask"
        few = [SMALL.get(before, word) for before, word in zip(["", *arguments], arguments)]  # noqa: B905
        named[name] = [name, *few, *(["--workers", "1"] if name == "arena" else [])]
    return named


def finished(store):
    with Store(store, create=False) as opened:
        return sum(len(opened.finished(trial)) for trial in opened.trials())


def test_the_tutorial_runs_as_it_says_and_goes_on_after_ctrl_c(tmp_path, monkeypatch):
    (tmp_path / "my_rules.py").write_text(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1])
    told, store, finish = story(), tmp_path / "unmask-lab.sqlite", Store.finish
    code, out, err = unmask(tmp_path, told["rules"], told["run"])
    assert (code, "calm" in out) == (0, True), err

    decoded = []

    def finish_and_interrupt(*arguments):
        finish(*arguments)
        decoded.append(arguments)
        if len(decoded) == 5:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Store, "finish", finish_and_interrupt)
    code, _, err = unmask(tmp_path, told["compare"])
    assert code == 130
    assert err.count("\n") == 3  # two trials are done, and the interrupt
    assert "unmask compare: interrupted; finished examples are in unmask-lab.sqlite" in err
    assert finished(store) == 5
    code, out, err = unmask(tmp_path, told["compare"])
    assert code == 0, err
    assert len(decoded) == finished(store) == 4 * 2  # four rules, two examples, none twice
    assert MINE in out

    monkeypatch.setattr(report, "plots", lambda findings: plots(findings)[:2])
    for name in ("arena", "dissect", "report"):
        code, out, err = unmask(tmp_path, told[name])
        assert code == 0, err
    compared = json.loads((tmp_path / "compare" / "compare.json").read_text())
    assert compared["against_the_first"][-1]["rule"] == MINE
    arena = json.loads((tmp_path / "arena" / "arena.json").read_text())
    name = "calm | sure({0.6,0.8,0.95})"
    assert name in " ".join(arena["opening"])
    for field in arena["fields"]:
        assert next(each for each in field["rules"] if each["rule"] == name)["aup"] > 0
    for plot in (tmp_path / "arena" / "img").glob("*.svg"):
        assert "calm" in plot.read_text()
    written = (tmp_path / "report" / "report.md").read_text().replace("\\", "")
    assert MINE in written
    assert "calm(0.1) | swd(5) | sure(0.9)" in written
