"""AUP of every method whose knob was swept. The trials of a curve differ only in the knob."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from unmask.errors import LabError
from unmask.lab.aup import Area, RatePoint, accuracy_at, aup, aup_interval, rate_within
from unmask.lab.report.panels import Exam, TrialSetting
from unmask.lab.report.rule_parts import rule_of, sortable, versioned
from unmask.lab.stats import Interval
from unmask.lab.summary import Summary, why_not

Speed = Literal["nominal", "effective"]
SPEEDS: tuple[Speed, ...] = ("nominal", "effective")


@dataclass(frozen=True)
class AupCurve:
    """One method in one setting on one exam, sorted by its knob."""

    method: str  # with a dot for the knob: "confidence | eb(·)"
    setting: TrialSetting
    exam: Exam
    summaries: tuple[Summary, ...]
    knob: str  # its name: "gamma"
    values: tuple[str, ...]  # of the knob, one for each trial

    @property
    def name(self) -> str:
        """The method, with its version where there are several."""
        return versioned(self.method, self.summaries[0].version)

    def points(self, speed: Speed) -> list[RatePoint]:
        return [
            RatePoint(each.rates[speed], 100 * each.accuracy(), value)
            for each, value in zip(self.summaries, self.values, strict=True)
        ]


@dataclass(frozen=True)
class Scored:
    """The AUP of a curve and plainer figures, for one way to count tokens."""

    curve: AupCurve
    speed: Speed
    area: Area
    interval: Interval | None  # None if the speed is undefined for some bootstrap draws
    accuracy_at_2: float | None
    accuracy_at_4: float | None
    rate_within_1: float
    best_from: Summary  # the trial whose accuracy is y_max

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "method": self.curve.name,
            "knob": self.curve.knob,
            "task": self.curve.exam.task,
            "trials": [each.trial.key for each in self.curve.summaries],
            "tokens_per_forward": self.speed,
            "aup": self.area.value,
            "interval": None if self.interval is None else list(self.interval),
            "kept": [_record(point) for point in self.area.kept],
            "dropped": [_record(point) for point in self.area.dropped],
            "y_max": self.area.best,
            "y_max_from": self.best_from.trial.key,
            "accuracy_at_2": self.accuracy_at_2,
            "accuracy_at_4": self.accuracy_at_4,
            "rate_within_1": self.rate_within_1,
        }


@dataclass(frozen=True)
class Contest:
    """Curves over the same examples, with one y_max for all of them."""

    exam: Exam
    weights: str
    scored: tuple[Scored, ...]
    left_out: tuple[str, ...]


def contests(summaries: Sequence[Summary]) -> list[Contest]:
    """A contest for every model and exam with a swept knob."""
    groups: dict[tuple[str, Exam], list[Summary]] = {}
    for each in summaries:
        groups.setdefault((each.trial.weights, Exam.of(each.trial)), []).append(each)
    made = []
    ranked = sorted(groups, key=lambda key: (groups[key][0].trial.model, key[0], key[1].order))
    for weights, exam in ranked:
        members = groups[weights, exam]
        curves, left_out = curves_of(members)
        if curves:
            made.append(Contest(exam, weights, _scored(curves), tuple(left_out)))
    return made


def curves_of(summaries: Sequence[Summary]) -> tuple[list[AupCurve], list[str]]:
    """Methods with at least two knobs, and sentences on the trials that were left out.

    A trial is left out if its examples are not those of most trials.
    """
    swept = [
        (setting, sweep) for setting, members in _alike(summaries) for sweep in _sweeps(members)
    ]
    every = [each for _, sweep in swept for each in sweep.summaries]
    if not every:
        return [], []
    asked = [tuple(row.ask for row in each.rows) for each in every]
    reference = every[max(range(len(every)), key=lambda i: (asked.count(asked[i]), len(asked[i])))]
    curves, left_out = [], []
    for setting, sweep in swept:
        alike = []
        for each, value in zip(sweep.summaries, sweep.values, strict=True):
            reason = why_not(reference, each) or _too_slow(each)
            if reason is None:
                alike.append((each, value))
            else:
                left_out.append(f"{rule_of(each).name} ({setting.words()}): {reason}")
        if len(alike) > 1:
            members, values = zip(*alike, strict=True)
            exam = Exam.of(members[0].trial)
            curves.append(AupCurve(sweep.method, setting, exam, members, sweep.knob, values))
    return curves, list(dict.fromkeys(left_out))


@dataclass(frozen=True)
class _Sweep:
    """Trials whose rules differ in one number only, sorted by it."""

    method: str
    knob: str
    summaries: tuple[Summary, ...]
    values: tuple[str, ...]


def _alike(summaries: Sequence[Summary]) -> list[tuple[TrialSetting, list[Summary]]]:
    """The trials of each setting; versions of a rule's parts stand apart."""
    groups: dict[tuple[TrialSetting, str], list[Summary]] = {}
    for each in summaries:
        groups.setdefault((TrialSetting.of(each.trial), each.version), []).append(each)
    ranked = sorted(groups, key=lambda place: (place[0].order, place[1]))
    return [(place[0], groups[place]) for place in ranked]


def _sweeps(summaries: Sequence[Summary]) -> list[_Sweep]:
    """The groups of rules that differ in one knob, the first knob of the selection before others.

    A group all of whose rules are in groups of knobs that come before it is left out.
    """
    groups: dict[tuple[tuple[int, int], str, str], dict[str, Summary]] = {}
    for each in summaries:
        for knob in rule_of(each).knobs:
            groups.setdefault((knob.rank, knob.method, knob.name), {})[knob.value] = each
    sweeps, placed = [], set[str]()
    for (_, method, name), members in sorted(groups.items(), key=lambda item: item[0][0]):
        rules = {rule_of(each).rule for each in members.values()}
        if len(members) > 1 and not rules <= placed:
            placed |= rules
            values = tuple(sorted(members, key=sortable))
            sweeps.append(_Sweep(method, name, tuple(members[v] for v in values), values))
    return sorted(sweeps, key=lambda sweep: rule_of(sweep.summaries[0]).order)


def _too_slow(summary: Summary) -> str | None:
    return None if summary.rates["effective"] > 0 else "it wrote no token before the end"


def _scored(curves: Sequence[AupCurve]) -> tuple[Scored, ...]:
    members = [each for curve in curves for each in curve.summaries]
    best = max(members, key=lambda each: each.accuracy())
    top, scored = 100 * best.accuracy(), []
    for curve, speed in itertools.product(curves, SPEEDS):
        points = curve.points(speed)
        area, interval = aup(points, top), _interval(curve, speed, top)
        at_2, at_4, within = accuracy_at(points, 2), accuracy_at(points, 4), rate_within(points)
        scored.append(Scored(curve, speed, area, interval, at_2, at_4, within, best))
    return tuple(scored)


def _interval(curve: AupCurve, speed: Speed, best: float) -> Interval | None:
    rates = [each.ratios(speed) for each in curve.summaries]
    try:
        return aup_interval(rates, [each.solved() for each in curve.summaries], best)
    except LabError:
        return None


def _record(point: RatePoint) -> dict[str, Any]:
    return {"knob": point.name, "rate": point.rate, "accuracy": point.accuracy}
