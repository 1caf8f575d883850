"""Paired comparisons: each SWD rule with the same rule at lam 0, over the same examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unmask.errors import UnknownName
from unmask.lab.report.blocks import Tone
from unmask.lab.report.rule_parts import parts_of
from unmask.lab.stats import LEVEL, Paired, holm, star_rule
from unmask.lab.summary import Comparison, Summary, why_not
from unmask.rules.rule import Rule

EOS_POLICIES = {
    "suppress": "EOS suppressed",
    "last": "EOS last",
}  # that a baseline is repeated with


@dataclass(frozen=True)
class TrialPair:
    """A trial, its baseline, and the paired difference."""

    first: Summary
    second: Summary
    acc: Paired
    compat: Paired
    holm: float = 1.0  # McNemar's exact p after Holm's correction for all comparisons of the report

    @property
    def tone(self) -> Tone:
        """`gain` or `loss` if the corrected p is below 0.05, which earns a star, else empty."""
        if self.holm >= LEVEL:
            return ""
        return "gain" if self.acc.difference > 0 else "loss"

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
    eos: dict[str, TrialPair] = field(default_factory=dict)  # another EOS policy with EOS kept
    eos_refused: dict[str, str] = field(default_factory=dict)

    @property
    def against(self) -> str:
        """The baseline in words."""
        return "the same rule at lam 0" if self.baseline is None else self.baseline

    @property
    def count(self) -> int:
        """How many comparisons the report makes: Holm's correction is for all of them."""
        return len(self.made) + len(self.eos)

    @property
    def stars(self) -> str:
        """What a star means in this report."""
        return f"{star_rule(self.count)} of this report"

    def toned(self, tone: Tone) -> list[TrialPair]:
        """The gains or the losses, largest first."""
        pairs = [pair for pair in self.made.values() if pair.tone == tone]
        return sorted(pairs, key=lambda pair: -abs(pair.acc.difference))


def compare(summaries: Sequence[Summary], baseline: str | None = None) -> Comparisons:
    """Compare each SWD rule with the same rule at lam 0, or each rule with a given baseline.

    Baselines over the full window under another EOS policy are compared with EOS kept, too.
    """
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
    policies, eos_refused = _other_policies(summaries, index)
    pairs = _corrected([_pair_of(first, second) for first, second in (*chosen, *policies)])
    made, eos = (
        {pair.second.trial.key: pair for pair in some}
        for some in (pairs[: len(chosen)], pairs[len(chosen) :])
    )
    return Comparisons(made, refused, wanted, eos, eos_refused)


def _other_policies(
    summaries: Sequence[Summary], index: dict[str, Summary]
) -> tuple[list[tuple[Summary, Summary]], dict[str, str]]:
    """Each baseline with EOS suppressed or last, after the same trial with EOS kept."""
    chosen, refused = [], {}
    for second in summaries:
        trial, parts = second.trial, parts_of(second.trial.rule)
        if parts.lam or trial.block is not None or trial.eos not in EOS_POLICIES:
            continue
        first = index.get(replace(trial, rule=parts.rule, eos="keep").key)
        reason = None if first is None else why_not(first, second)
        if reason is not None:
            refused[trial.key] = reason
        elif first is not None:
            chosen.append((first, second))
    return chosen, refused


def _corrected(pairs: Sequence[TrialPair]) -> list[TrialPair]:
    corrected = holm([pair.acc.p for pair in pairs])
    return [replace(pair, holm=p) for pair, p in zip(pairs, corrected, strict=True)]


def _pair_of(first: Summary, second: Summary) -> TrialPair:
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
