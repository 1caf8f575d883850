"""Versions of a rule whose parts were edited: their names, and which of them the tables show."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import count

from unmask.lab.report.panels import Exam, TrialSetting
from unmask.lab.report.rule_parts import parts_of
from unmask.lab.summary import Summary

SHORTEST = 4  # digits of a fingerprint in a name


def with_versions(summaries: Sequence[Summary]) -> tuple[Summary, ...]:
    """The same trials. Those of a rule with several versions of its parts know theirs."""
    fingerprints: dict[str, set[str]] = {}
    for each in summaries:
        fingerprints.setdefault(_rule(each), set()).add(each.trial.parts)
    names = {rule: _names(each) for rule, each in fingerprints.items()}
    return tuple(replace(each, version=names[_rule(each)][each.trial.parts]) for each in summaries)


def newest(summaries: Sequence[Summary], incomplete: Collection[str] = ()) -> tuple[Summary, ...]:
    """One trial for each rule, setting and exam: the newest complete one, else the newest.

    Workers are numbered in the order in which they started. `incomplete` holds keys of trials.
    """
    latest: dict[tuple[object, ...], Summary] = {}

    def rank(each: Summary) -> tuple[object, ...]:
        started = max(row.worker for row in each.rows)
        return (each.trial.key not in incomplete, started, each.trial.parts)

    for each in summaries:
        place = (TrialSetting.of(each.trial), Exam.of(each.trial), each.trial.rule)
        if place not in latest or rank(each) > rank(latest[place]):
            latest[place] = each
    shown = {each.trial.key for each in latest.values()}
    return tuple(each for each in summaries if each.trial.key in shown)


def _names(fingerprints: Collection[str]) -> dict[str, str]:
    """A short name for each fingerprint; empty if there is only one."""
    if len(fingerprints) == 1:
        return dict.fromkeys(fingerprints, "")
    length = next(n for n in count(SHORTEST) if _differ(each[:n] for each in fingerprints))
    return {each: each[:length] or "built in" for each in fingerprints}


def _differ(names: Iterable[str]) -> bool:
    listed = list(names)
    return len(set(listed)) == len(listed)


def _rule(summary: Summary) -> str:
    return parts_of(summary.trial.rule).rule
