"""Two versions of one rule: their names, and which of them is shown."""

from __future__ import annotations

from dataclasses import replace

from tests.lab.makers import trial
from tests.lab.stores import findings_of, rows_of, solved, summary
from unmask.lab.report.rule_parts import rule_of
from unmask.lab.report.verdicts import summary_of
from unmask.lab.report.versions import newest, with_versions
from unmask.lab.summary import Summary

MINE = "mine | eb(0.1)"


def by(worker, pattern, **changes):
    rows = rows_of(solved(pattern), worker=worker)
    return Summary.of(trial(rule=MINE, **changes), rows)


def names(summaries):
    return [rule_of(each).name for each in with_versions(summaries)]


def test_one_version_has_a_plain_name():
    assert names([by(1, "11", parts="3f2a77"), by(1, "11", parts="3f2a77", block=16)]) == [MINE] * 2


def test_two_versions_have_the_start_of_their_fingerprint():
    assert names([by(1, "11", parts="3f2a77"), by(2, "11", parts="9c0000")]) == [
        "mine | eb(0.1) [version 3f2a]",
        "mine | eb(0.1) [version 9c00]",
    ]


def test_equal_starts_are_told_apart():
    assert names([by(1, "11", parts="3f2a77"), by(2, "11", parts="3f2a88")]) == [
        "mine | eb(0.1) [version 3f2a7]",
        "mine | eb(0.1) [version 3f2a8]",
    ]


def test_the_newest_complete_version_is_shown():
    old, new = by(1, "11", parts="f"), by(2, "10", parts="a")
    assert newest([old, new]) == (new,)
    assert newest([old, new], {new.trial.key}) == (old,)
    elsewhere = replace(old, trial=replace(old.trial, block=16))
    assert newest([old, new, elsewhere]) == (new, elsewhere)


def test_an_older_version_is_a_baseline_by_its_name_and_counts_nowhere_else():
    base = summary("1100", rule="confidence | eb(0.1)")
    old, new = by(1, "1000", parts="3f2a77"), by(2, "1111", parts="9c0000")
    findings = findings_of([base, old, new])
    assert [pair.second.trial for pair in findings.comparisons.made.values()] == [new.trial]
    assert summary_of(findings).startswith("1 comparison with confidence | eb(0.1), the best rule")
    record = findings.record()
    assert {each["name"]: each["shown"] for each in record["trials"]} == {
        "confidence | eb(0.1)": True,
        "mine | eb(0.1) [version 3f2a]": False,
        "mine | eb(0.1) [version 9c00]": True,
    }
    chosen = findings_of([base, old, new], "mine | eb(0.1) [version 3f2a]").comparisons
    assert {rule_of(pair.second).name for pair in chosen.made.values()} == {
        "confidence | eb(0.1)",
        "mine | eb(0.1) [version 9c00]",
    }
    assert {pair.first.trial for pair in chosen.made.values()} == {old.trial}
