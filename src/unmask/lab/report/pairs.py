"""Paired comparisons over the same examples: SWD with lam 0, any rule with any other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from unmask.errors import UnknownName
from unmask.lab.report.blocks import Tone
from unmask.lab.report.panels import Exam, TrialSetting, unequal
from unmask.lab.report.rule_parts import parts_of, rule_of, versioned
from unmask.lab.stats import LEVEL, Paired, holm, star_rule
from unmask.lab.summary import Comparison, Summary, why_not

BASELINE_EOS = ("suppress", "last")  # the EOS policies that a baseline is repeated with

LAM_0 = "the same rule at lam 0"
BEST = "the best rule"
NO_RIVAL = "no other rule was run in the same setting"
OTHER_TAU = "the same rule at lam 0 with another tau"

Place: TypeAlias = tuple[TrialSetting, Exam]


class Baselined(NamedTuple):
    """A trial and its baseline, and what the baseline is, in words."""

    first: Summary
    second: Summary
    against: str


Outcome: TypeAlias = tuple[list[Baselined], dict[str, str]]  # and reasons, by the trial's key


@dataclass(frozen=True)
class TrialPair:
    """A trial, its baseline, and the paired difference."""

    first: Summary
    second: Summary
    acc: Paired
    compat: Paired
    against: str = LAM_0  # what the baseline is, in words
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
    def with_best(self) -> bool:
        """Whether the baseline is the best rule of the setting."""
        return self.against.startswith(BEST)

    @property
    def other_knob(self) -> bool:
        """Whether the baseline is the same rule at lam 0 with another threshold."""
        return self.against == OTHER_TAU

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "trial": self.second.trial.key,
            "baseline": self.first.trial.key,
            "rule": rule_of(self.second).name,
            "baseline_rule": rule_of(self.first).name,
            "against": self.against,
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
        """The baselines in words, with their number where there are several."""
        if self.baseline is not None:
            return self.baseline
        alone = len(self.references) == 1
        counts = Counter(
            f"{rule_of(pair.first).name}, {pair.against}"
            if alone and pair.with_best
            else LAM_0
            if pair.other_knob
            else pair.against
            for pair in self.made.values()
        )
        if len(counts) < 2:
            return next(iter(counts), LAM_0)
        return " or ".join(f"{words} ({number})" for words, number in counts.items())

    @property
    def references(self) -> frozenset[str]:
        """The keys of the best rules that others are compared with."""
        pairs = self.made.values()
        return frozenset(pair.first.trial.key for pair in pairs if pair.with_best)

    @property
    def about_swd(self) -> bool:
        """Whether all comparisons are of SWD with lam 0."""
        pairs = self.made.values()
        return self.baseline is None and all(p.against in (LAM_0, OTHER_TAU) for p in pairs)

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


def place_of(summary: Summary) -> Place:
    """All that two trials must share to be compared."""
    return TrialSetting.of(summary.trial), Exam.of(summary.trial)


def compare(
    summaries: Sequence[Summary], baseline: str | None = None, older: Sequence[Summary] = ()
) -> Comparisons:
    """Compare each SWD rule with the same rule at lam 0, or each rule with a given baseline.

    A rule that has neither SWD nor a trial with SWD, or no trial at lam 0, is compared with the
    best rule without memory in the same setting. Baselines over the full window under another EOS
    policy are compared with EOS kept, too.

    Args:
        summaries: the trials to compare.
        baseline: a rule of the store, as a report names it.
        older: earlier versions of these rules, which can only be baselines.
    """
    everything = [*older, *summaries]
    policies, eos_refused = _other_policies(everything, {each.trial.key for each in summaries})
    if baseline is None:
        wanted = None
        settled = {each.second.trial.key for each in policies} | eos_refused.keys()
        chosen, refused = _by_default(summaries, everything, settled)
    else:
        wanted = _known(baseline, everything)
        chosen, refused = _against(wanted, summaries, everything)
    pairs = _corrected([_pair_of(each) for each in (*chosen, *policies)])
    made, eos = (
        {pair.second.trial.key: pair for pair in some}
        for some in (pairs[: len(chosen)], pairs[len(chosen) :])
    )
    return Comparisons(made, refused, wanted, eos, eos_refused)


def _by_default(
    summaries: Sequence[Summary], everything: Sequence[Summary], settled: Collection[str]
) -> Outcome:
    """SWD with lam 0; what is left with the best rule of its setting."""
    index = {(place_of(each), _rule(each), each.trial.parts): each for each in everything}
    candidates: list[Baselined] = []
    left: dict[Place, list[Summary]] = {}
    for second in summaries:
        parts, place = rule_of(second), place_of(second)
        first = index.get((place, parts.base, second.trial.parts)) if parts.lam else None
        other = _other_threshold(second, summaries) if parts.lam and first is None else None
        if first is not None:
            candidates.append(Baselined(first, second, LAM_0))
        elif other is not None:
            candidates.append(Baselined(other, second, OTHER_TAU))
        elif second.trial.key not in settled:
            left.setdefault(place, []).append(second)
    partners = {each.first.trial.key for each in candidates}
    chosen, refused = _comparable(candidates)
    for place, members in left.items():
        if all(each.trial.key in partners for each in members):
            continue  # every rule here was run with SWD, too
        rivals = [each for each in summaries if place_of(each) == place]
        best, words = _reference(rivals)
        others = [each for each in members if each is not best]
        if len(rivals) == 1:
            refused[best.trial.key] = _why_alone(best, everything)
        more, reasons = _comparable([Baselined(best, each, words) for each in others])
        chosen += more
        refused |= reasons
    return chosen, refused


def _against(wanted: str, summaries: Sequence[Summary], everything: Sequence[Summary]) -> Outcome:
    """Every rule with the baseline of choice."""
    named = [each for each in everything if wanted in (rule_of(each).name, _rule(each))]
    index = {place_of(each): each for each in named}  # the newest version stands last
    keys = {each.trial.key for each in index.values()}
    candidates, refused = [], {}
    for second in summaries:
        first = index.get(place_of(second))
        if first is not None and second.trial.key not in keys:
            candidates.append(Baselined(first, second, wanted))
        elif first is None:
            refused[second.trial.key] = _apart(wanted, second, named)
    chosen, reasons = _comparable(candidates)
    return chosen, refused | reasons


def _comparable(candidates: Sequence[Baselined]) -> Outcome:
    chosen, refused = [], {}
    for each in candidates:
        reason = why_not(each.first, each.second)
        if reason is None:
            chosen.append(each)
        else:
            refused[each.second.trial.key] = reason
    return chosen, refused


def _reference(rivals: Sequence[Summary]) -> tuple[Summary, str]:
    """The rule that others of a setting are compared with, and what it is in words."""
    most = max(each.count for each in rivals)
    whole = [each for each in rivals if each.count == most]
    plain = [each for each in whole if not rule_of(each).remembers and not rule_of(each).own]
    without = [each for each in whole if not rule_of(each).lam]
    words = "memory" if plain else "SWD"
    best = max(plain or without or whole, key=lambda each: (each.accuracy(), -each.mean("nfe")))
    told = f"{BEST} without {words}" if plain or without else BEST
    return best, told


def _why_alone(summary: Summary, everything: Sequence[Summary]) -> str:
    parts = rule_of(summary)
    if not parts.lam:
        return NO_RIVAL
    return _apart(parts.base, summary, [each for each in everything if _rule(each) == parts.base])


def _apart(rule: str, summary: Summary, others: Sequence[Summary]) -> str:
    """Why a trial has no baseline: how its setting differs from the nearest one."""
    text = f"{rule} was not run in the same setting"
    differences = [unequal(each.trial, summary.trial) for each in others]
    nearest = min(differences, key=len, default=[])
    return text + (f" ({'; '.join(nearest)})" if nearest else "")


def _other_policies(
    everything: Sequence[Summary], wanted: Collection[str]
) -> tuple[list[Baselined], dict[str, str]]:
    """Each baseline with EOS suppressed or last, after the same trial with EOS kept."""
    index = {(place_of(each), _rule(each), each.trial.parts): each for each in everything}
    candidates = []
    for second in everything:
        trial, parts = second.trial, rule_of(second)
        if parts.lam or trial.block is not None or trial.eos not in BASELINE_EOS:
            continue
        setting, exam = place_of(second)
        first = index.get(((replace(setting, eos="keep"), exam), parts.rule, trial.parts))
        if first is not None and trial.key in wanted:
            candidates.append(Baselined(first, second, "the same rule with EOS kept"))
    return _comparable(candidates)


def _corrected(pairs: Sequence[TrialPair]) -> list[TrialPair]:
    corrected = holm([pair.acc.p for pair in pairs])
    return [replace(pair, holm=p) for pair, p in zip(pairs, corrected, strict=True)]


def _pair_of(candidate: Baselined) -> TrialPair:
    """Compare two trials, without Holm's correction."""
    first, second, against = candidate
    paired = Comparison(first, second)
    return TrialPair(first, second, paired.accuracy(), paired.accuracy("acc_compat"), against)


def _known(baseline: str, summaries: Sequence[Summary]) -> str:
    """A baseline as the report names it; it need not be a rule that can be parsed here."""
    rule, _, version = baseline.partition(" [version ")
    name = versioned(parts_of(rule.strip()).rule, version.strip(" ]"))
    names = {rule_of(each).name for each in summaries} | set(map(_rule, summaries))
    if name not in names:
        raise UnknownName("baseline", name, sorted(names))
    return name


def _rule(summary: Summary) -> str:
    return parts_of(summary.trial.rule).rule


def _other_threshold(second: Summary, summaries: Sequence[Summary]) -> Summary | None:
    """The trial at lam 0 with another tau, if there is exactly one.

    SWD lowers the scores that tau is compared with, so the best tau differs at lam 0.
    """
    parts = rule_of(second)
    if parts.kind != "threshold":
        return None
    trials = [
        each
        for each in summaries
        if place_of(each) == place_of(second)
        and not rule_of(each).lam
        and rule_of(each).method == parts.base_method
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
