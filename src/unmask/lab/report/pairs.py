"""Paired comparisons: each SWD rule with the same rule at lam 0, over the same examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from unmask.errors import UnknownName
from unmask.lab.report.blocks import Tone
from unmask.lab.report.rule_parts import parts_of
from unmask.lab.stats import Paired, holm
from unmask.lab.summary import Comparison, Summary, why_not
from unmask.rules.rule import Rule


@dataclass(frozen=True)
class TrialPair:
    """A trial, its baseline, and the paired difference."""

    first: Summary
    second: Summary
    acc: Paired
    compat: Paired
    holm: float = 1.0  # McNemar's p after Holm's correction for all comparisons of the report

    @property
    def tone(self) -> Tone:
        """`gain` or `loss` if the interval excludes 0, else empty."""
        low, high = self.acc.interval
        return "gain" if low > 0 else "loss" if high < 0 else ""

    @property
    def forwards(self) -> float:
        """The difference of the mean NFE, second minus first."""
        return self.second.mean("nfe") - self.first.mean("nfe")

    @property
    def other_knob(self) -> bool:
        """Whether the rules differ in more than lam: the baseline has another threshold."""
        first, second = parts_of(self.first.trial.rule), parts_of(self.second.trial.rule)
        return first.base != second.base

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "trial": self.second.trial.key,
            "baseline": self.first.trial.key,
            "rule": self.second.trial.rule,
            "baseline_rule": self.first.trial.rule,
            "other_knob": self.other_knob,
            "acc": _record(self.acc),
            "acc_compat": _record(self.compat),
            "p_holm": self.holm,
            "nfe": self.forwards,
            "verdict": self.tone or "undecided",
        }


@dataclass(frozen=True)
class Comparisons:
    """All comparisons of a report, by the key of the compared trial."""

    made: dict[str, TrialPair]
    refused: dict[str, str]  # why a trial was not compared
    baseline: str | None = None  # the rule of --baseline; None: the same rule at lam 0

    @property
    def against(self) -> str:
        """The baseline in words."""
        return "the same rule at lam 0" if self.baseline is None else self.baseline

    def toned(self, tone: Tone) -> list[TrialPair]:
        """The gains or the losses, largest first."""
        pairs = [pair for pair in self.made.values() if pair.tone == tone]
        return sorted(pairs, key=lambda pair: -abs(pair.acc.difference))


def compare(summaries: Sequence[Summary], baseline: str | None = None) -> Comparisons:
    """Compare each SWD rule with the same rule at lam 0, or each rule with a given baseline."""
    wanted = None if baseline is None else _known(baseline, summaries)
    index = {_key(each, parts_of(each.trial.rule).rule): each for each in summaries}
    chosen: list[tuple[Summary, Summary]] = []
    refused: dict[str, str] = {}
    for second in summaries:
        parts = parts_of(second.trial.rule)
        if (wanted is None and not parts.lam) or parts.rule == wanted:
            continue
        first = index.get(_key(second, wanted or parts.base))
        if first is None and wanted is None:
            first = _other_threshold(second, summaries)
        if first is None:
            reason = f"{wanted or parts.base} was not run in the same setting"
        else:
            reason = why_not(first, second) or ""
        if first is None or reason:
            refused[second.trial.key] = reason
        else:
            chosen.append((first, second))
    pairs = [pair_of(first, second) for first, second in chosen]
    corrected = holm([pair.acc.p for pair in pairs])
    made = {
        pair.second.trial.key: replace(pair, holm=p)
        for pair, p in zip(pairs, corrected, strict=True)
    }
    return Comparisons(made, refused, wanted)


def pair_of(first: Summary, second: Summary) -> TrialPair:
    """Compare two trials, without Holm's correction."""
    paired = Comparison(first, second)
    return TrialPair(first, second, paired.accuracy(), paired.accuracy("acc_compat"))


def _known(baseline: str, summaries: Sequence[Summary]) -> str:
    rule = parts_of(str(Rule.parse(baseline))).rule
    rules = sorted({parts_of(each.trial.rule).rule for each in summaries})
    if rule not in rules:
        raise UnknownName("baseline", rule, rules)
    return rule


def _key(summary: Summary, rule: str) -> str:
    """The key that the same trial would have with another rule."""
    return replace(summary.trial, rule=rule).key


def _other_threshold(second: Summary, summaries: Sequence[Summary]) -> Summary | None:
    """The trial at lam 0 with another tau, if there is exactly one.

    SWD lowers the scores that tau is compared with, so the best tau differs at lam 0.
    """
    parts = parts_of(second.trial.rule)
    if parts.kind != "threshold":
        return None
    setting = _key(second, "")
    trials = [
        each
        for each in summaries
        if _key(each, "") == setting
        and not parts_of(each.trial.rule).lam
        and parts_of(each.trial.rule).method == parts.base_method
    ]
    return trials[0] if len(trials) == 1 else None


def _record(paired: Paired) -> dict[str, Any]:
    return {
        "difference": paired.difference,
        "interval": list(paired.interval),
        "only_baseline": paired.only_first,
        "only_trial": paired.only_second,
        "p": paired.p,
    }
