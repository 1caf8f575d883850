"""One field of the arena: all rules on the same examples, in the same window and EOS policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from unmask.decoding.options import EOS_WORDS
from unmask.lab.arena.entries import Entry
from unmask.lab.aup import Area, RatePoint, aup
from unmask.lab.equal_cost import EqualCost, RuleCurve, at_equal_cost, front
from unmask.lab.stats import LEVEL, holm
from unmask.lab.summary import Summary
from unmask.lab.sweep.trial import Trial


@dataclass(frozen=True)
class Contestant:
    """One rule in one field; the first of its settings is the published one."""

    entry: Entry
    curve: RuleCurve
    area: Area  # AUP over nominal tokens per forward

    @property
    def published(self) -> Summary:
        return self.curve.summaries[0]


@dataclass(frozen=True)
class Field:
    """A task, a window and an EOS policy, with every rule along its knob."""

    contestants: tuple[Contestant, ...]

    @classmethod
    def of(cls, measured: Mapping[Entry, Sequence[Summary]]) -> Field:
        """From the trials of every entry."""
        best = 100 * max(each.accuracy() for some in measured.values() for each in some)
        return cls(
            tuple(
                Contestant(entry, RuleCurve(entry.name, tuple(some)), _area(some, best))
                for entry, some in measured.items()
            )
        )

    @property
    def trial(self) -> Trial:
        """A trial of the field; all share task, window, EOS policy and canvas."""
        return self.contestants[0].published.trial

    @property
    def count(self) -> int:
        return self.contestants[0].published.count

    @property
    def title(self) -> str:
        trial = self.trial
        return f"{trial.task}, {trial.window}, {EOS_WORDS[trial.eos]}"

    @cached_property
    def baseline(self) -> Contestant:
        """The rule without memory with the best AUP, or of all rules if all remember."""
        plain = [each for each in self.contestants if not each.entry.remembers]
        return max(plain or self.contestants, key=lambda each: each.area.value)

    @cached_property
    def rivals(self) -> list[Contestant]:
        """All rules but the baseline."""
        return [each for each in self.contestants if each is not self.baseline]

    @cached_property
    def costs(self) -> dict[str, EqualCost]:
        """Each rival against the baseline at equal forwards, by name."""
        base = self.baseline.curve
        return {each.entry.name: at_equal_cost(base, each.curve) for each in self.rivals}

    @cached_property
    def front(self) -> list[Summary]:
        """The settings that no other one of the field dominates."""
        return front([each for c in self.contestants for each in c.curve.settings])

    def on_front(self, contestant: Contestant) -> bool:
        """Whether some setting of a rule is not dominated."""
        return any(each in self.front for each in contestant.curve.settings)


@dataclass(frozen=True)
class Arena:
    """All fields, with one correction for all their comparisons."""

    fields: tuple[Field, ...]

    @property
    def entries(self) -> list[Entry]:
        return [each.entry for each in self.fields[0].contestants]

    @cached_property
    def holm(self) -> dict[tuple[str, str], float]:
        """The corrected p of every comparison, by the field's title and the rule's name."""
        keys = [(field.title, name) for field in self.fields for name in field.costs]
        ps = [cost.p for field in self.fields for cost in field.costs.values()]
        return dict(zip(keys, holm(ps), strict=True))

    def tone(self, field: Field, name: str) -> int:
        """1 if a rule is better than the baseline with a star, -1 if worse, else 0."""
        if name not in field.costs or self.holm[field.title, name] >= LEVEL:
            return 0
        return 1 if field.costs[name].difference > 0 else -1

    def standing(self, entry: Entry) -> OverallStanding:
        """How a rule did over all fields."""
        name, places = entry.name, [(field, _of(field, entry.name)) for field in self.fields]
        tones = [self.tone(field, name) for field in self.fields]
        gains = [
            field.costs[name].difference if name in field.costs else 0.0 for field in self.fields
        ]
        return OverallStanding(
            entry,
            sum(field.on_front(each) for field, each in places),
            tones.count(1),
            tones.count(-1),
            sum(gains) / len(gains),
            sum(each.area.value for _, each in places) / len(places),
        )

    @cached_property
    def standings(self) -> list[OverallStanding]:
        """All rules, the best mean difference at equal forwards first."""
        every = [self.standing(entry) for entry in self.entries]
        return sorted(every, key=lambda each: -each.difference)

    def by_task(self) -> dict[str, list[Field]]:
        """The fields of each task."""
        tasks: dict[str, list[Field]] = {}
        for field in self.fields:
            tasks.setdefault(field.trial.task, []).append(field)
        return tasks


@dataclass(frozen=True)
class OverallStanding:
    """One rule over all fields."""

    entry: Entry
    fronts: int  # fields in which some setting is on the front
    better: int  # fields in which it beats the baseline, with a star
    worse: int
    difference: float  # mean over the fields, at equal forwards
    area: float  # mean AUP


def _of(field: Field, name: str) -> Contestant:
    return next(each for each in field.contestants if each.entry.name == name)


def _area(summaries: Sequence[Summary], best: float) -> Area:
    points = [RatePoint(each.rates["nominal"], 100 * each.accuracy()) for each in summaries]
    return aup(points, best)
