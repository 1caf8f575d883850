"""Every SWD rule against itself at lam 0, over the same examples; what is not alike is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from unmask.errors import UnknownName
from unmask.lab.report.blocks import Tone
from unmask.lab.report.rule_columns import read
from unmask.lab.stats import Paired, holm
from unmask.lab.summary import Comparison, Summary, why_not
from unmask.rules.rule import Rule


@dataclass(frozen=True)
class Pair:
    """A trial, its baseline, and how they differ."""

    first: Summary
    second: Summary
    acc: Paired
    compat: Paired
    holm: float = 1.0  # McNemar's p, corrected for all comparisons of the report

    @property
    def tone(self) -> Tone:
        """A gain or loss where the interval excludes 0."""
        low, high = self.acc.interval
        return "gain" if low > 0 else "loss" if high < 0 else ""

    @property
    def forwards(self) -> float:
        """How many more the second spends on an example."""
        return self.second.mean("nfe") - self.first.mean("nfe")

    @property
    def other_knob(self) -> bool:
        """Whether the baseline has another threshold."""
        first, second = read(self.first.trial.rule), read(self.second.trial.rule)
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
    """By the key of the trial that is compared."""

    made: dict[str, Pair]
    refused: dict[str, str]  # and why
    baseline: str | None = None  # the one that was asked for; None: the same rule at lam 0

    @property
    def against(self) -> str:
        """In words."""
        return "the same rule at lam 0" if self.baseline is None else self.baseline

    def toned(self, tone: Tone) -> list[Pair]:
        """The gains or losses, greatest first."""
        found = [pair for pair in self.made.values() if pair.tone == tone]
        return sorted(found, key=lambda pair: -abs(pair.acc.difference))


def compare(summaries: Sequence[Summary], baseline: str | None = None) -> Comparisons:
    """Each SWD rule with itself at lam 0; or, with a baseline, every other rule with that one."""
    wanted = None if baseline is None else _known(baseline, summaries)
    index = {_key(each, read(each.trial.rule).rule): each for each in summaries}
    chosen: list[tuple[Summary, Summary]] = []
    refused: dict[str, str] = {}
    for second in summaries:
        reading = read(second.trial.rule)
        if (wanted is None and not reading.lam) or reading.rule == wanted:
            continue
        first = index.get(_key(second, wanted or reading.base))
        if first is None and wanted is None:
            first = _other_threshold(second, summaries)
        if first is None:
            reason = f"{wanted or reading.base} was not run in the same setting"
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


def pair_of(first: Summary, second: Summary) -> Pair:
    """One comparison by itself."""
    found = Comparison(first, second)
    return Pair(first, second, found.accuracy(), found.accuracy("acc_compat"))


def _known(baseline: str, summaries: Sequence[Summary]) -> str:
    rule = read(str(Rule.parse(baseline))).rule
    rules = sorted({read(each.trial.rule).rule for each in summaries})
    if rule not in rules:
        raise UnknownName("baseline", rule, rules)
    return rule


def _key(summary: Summary, rule: str) -> str:
    """A fingerprint of the setting and a rule."""
    return replace(summary.trial, rule=rule).key


def _other_threshold(second: Summary, summaries: Sequence[Summary]) -> Summary | None:
    """The one lam 0 trial with another tau: SWD changes what tau is compared with."""
    reading = read(second.trial.rule)
    if reading.kind != "threshold":
        return None
    setting = _key(second, "")
    found = [
        each
        for each in summaries
        if _key(each, "") == setting
        and not read(each.trial.rule).lam
        and read(each.trial.rule).method == reading.base_method
    ]
    return found[0] if len(found) == 1 else None


def _record(found: Paired) -> dict[str, Any]:
    return {
        "difference": found.difference,
        "interval": list(found.interval),
        "only_baseline": found.only_first,
        "only_trial": found.only_second,
        "p": found.p,
    }
