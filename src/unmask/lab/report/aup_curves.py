"""AUP of every method whose knob was swept. The trials of a curve differ only in the knob."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from unmask.errors import LabError
from unmask.lab.aup import Area, RatePoint, accuracy_at, aup, aup_interval, rate_within
from unmask.lab.report.panels import Exam, TrialSetting
from unmask.lab.report.rule_parts import parts_of
from unmask.lab.stats import Interval
from unmask.lab.summary import Summary, why_not

Speed = Literal["nominal", "effective"]
SPEEDS: tuple[Speed, ...] = ("nominal", "effective")


@dataclass(frozen=True)
class AupCurve:
    """One method in one setting on one exam, sorted by its knob."""

    method: str
    setting: TrialSetting
    exam: Exam
    summaries: tuple[Summary, ...]

    def points(self, speed: Speed) -> list[RatePoint]:
        return [
            RatePoint(each.rates[speed], 100 * each.accuracy(), parts_of(each.trial.rule).knob)
            for each in self.summaries
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
            "method": self.curve.method,
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
    swept: dict[tuple[TrialSetting, str], list[Summary]] = {}
    for each in summaries:
        place = (TrialSetting.of(each.trial), parts_of(each.trial.rule).method)
        swept.setdefault(place, []).append(each)
    swept = {place: each for place, each in swept.items() if len(each) > 1}
    every = [each for members in swept.values() for each in members]
    if not every:
        return [], []
    asked = [tuple(row.ask for row in each.rows) for each in every]
    reference = every[max(range(len(every)), key=lambda i: (asked.count(asked[i]), len(asked[i])))]
    curves, left_out = [], []
    for (setting, method), members in sorted(
        swept.items(), key=lambda item: (item[0][0].order, parts_of(item[1][0].trial.rule).order)
    ):
        alike = []
        for each in sorted(members, key=lambda each: parts_of(each.trial.rule).order):
            reason = why_not(reference, each) or _too_slow(each)
            if reason is None:
                alike.append(each)
            else:
                left_out.append(f"{each.trial.rule} ({setting.words()}): {reason}")
        if len(alike) > 1:
            curves.append(AupCurve(method, setting, Exam.of(alike[0].trial), tuple(alike)))
    return curves, left_out


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
