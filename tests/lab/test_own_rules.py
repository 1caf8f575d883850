"""A researcher's own rule in the lab: written, swept beside others, reported, edited."""

from __future__ import annotations

import json
import sys

from tests.new_process import unmask
from unmask.lab.sweep.store import Store

FILE = '''
import unmask

WEIGHT = 0.1


@unmask.score(needs=unmask.Needs())
def calm(view, weight: float = WEIGHT):
    """Confidence, less where the entropy is high."""
    return unmask.Scores.log_utility(view.confidence.log() - weight * view.entropy)


@unmask.selection(needs=unmask.Needs())
def sure(view, scores, tau: float = 0.9):
    """All above tau, else the best."""
    best = unmask.first_in(unmask.best_first(scores.key, view.masked), 1, view.masked)
    return best | (view.masked & (view.confidence > tau))
'''
SWEEP = ["sweep", "--task", "words", "--limit", "4", "--length", "24", "--store", "s.sqlite"]
RULES = ("calm(0.1) | sure({0.5,0.9})", "calm({0.5,2}) | top(8)", "confidence | eb({0.1,1})")
OWN = [f"calm(0.1) | sure({tau})" for tau in (0.5, 0.9)]
OWN += [f"calm({weight}) | top(8)" for weight in (0.5, 2)]
BUILT_IN = ["confidence | eb(0.1)", "confidence | eb(1)"]


def sweep(*more):
    return [*SWEEP, *(word for rule in RULES for word in ("--rule", rule)), *more]


def report_in(folder):
    return json.loads((folder / "json" / "report.json").read_text())


def stored(folder):
    with Store(folder / "s.sqlite", create=False) as store:
        return {trial.key: trial for trial in store.trials()}


def test_a_rule_of_ones_own_is_compared_plotted_and_versioned_like_any_other(tmp_path, monkeypatch):
    own, report = ("--import", "mine.py"), ("report", "s.sqlite", "--output", "json")
    (tmp_path / "mine.py").write_text(FILE)
    for command in (sweep(*own), report):  # the process of the report knows neither part
        code, _, told = unmask(tmp_path, command)
        assert code == 0, told
    trials, record = stored(tmp_path), report_in(tmp_path)
    compared = {each["rule"] for each in record["comparisons"]}
    (best,) = {each["baseline_rule"] for each in record["comparisons"]}
    assert best in BUILT_IN
    assert compared | {best} == {*OWN, *BUILT_IN}
    assert {each["method"]: each["knob"] for each in record["aup"]} == {
        "calm(0.1) | sure(·)": "sure",
        "calm(·) | top(8)": "calm",
        "confidence | eb(·)": "gamma",
    }
    page = (tmp_path / "json" / "report.md").read_text().replace("\\", "")
    assert f"5 comparisons with {best}, the best rule without memory, in the same setting" in page
    assert "mine.py defines calm, sure: give --import mine.py" in page
    plot = next(line for line in page.splitlines() if line.startswith("![All rules"))
    assert all(each["method"] in plot for each in record["aup"])

    (tmp_path / "mine.py").write_text(FILE.replace("All above tau", "A comment") + "# more\n")
    code, _, told = unmask(tmp_path, sweep(*own))
    assert code == 0, told
    assert stored(tmp_path) == trials

    monkeypatch.setitem(sys.modules, "matplotlib", None)  # the plots were looked at above
    (tmp_path / "mine.py").write_text(FILE.replace("> tau", ">= tau"))
    baseline = ("--baseline", "calm(0.1)|sure(0.9)")
    code, _, told = unmask(tmp_path, sweep(*own), [*report, *own], [*report[:3], "b", *baseline])
    assert code == 0, told
    record = report_in(tmp_path)
    names = {each["name"] for each in record["trials"]}
    assert len(names) == len(record["trials"]) == len(trials) + 2
    versions = {name for name in names if name.startswith("calm(0.1) | sure(0.9) [version ")}
    assert len(versions) == 2
    shown = {each["name"] for each in record["trials"] if each["shown"]}
    assert len(shown & versions) == 1
    assert shown & versions <= {each["rule"] for each in record["comparisons"]}
    against = json.loads((tmp_path / "b" / "report.json").read_text())
    assert {each["baseline_rule"] for each in against["comparisons"]} == shown & versions
