"""What pays: SWD, a gate, an EOS policy or a block, each against the same task without it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from unmask.lab.arena.contest import Arena, Contestant, Field, best_of
from unmask.lab.equal_cost import EqualCost, at_equal_cost
from unmask.lab.report.wording import counted, points
from unmask.lab.stats import LEVEL, holm, star_rule


@dataclass(frozen=True)
class Lever:
    """One choice, and what it changes in every place where it can be made."""

    name: str
    costs: dict[str, EqualCost]  # by the field without it

    @property
    def mean(self) -> float:
        """The mean difference at equal forwards, in [-1, 1]."""
        return fmean(cost.difference for cost in self.costs.values())

    @property
    def by_task(self) -> dict[str, float]:
        """The mean difference in the fields of each task."""
        differences: dict[str, list[float]] = {}
        for title, cost in self.costs.items():
            differences.setdefault(title.partition(",")[0], []).append(cost.difference)
        return {task: fmean(some) for task, some in differences.items()}


@dataclass(frozen=True)
class Levers:
    """All choices, with one correction for all their comparisons."""

    each: tuple[Lever, ...]

    @classmethod
    def of(cls, arena: Arena) -> Levers:
        """Compare the best rule with a choice and the best without it.

        The rule without the choice has neither memory nor a gate; nor has the rule with another
        EOS policy or window.
        """
        fields = arena.fields
        policies = list(dict.fromkeys(each.trial.eos for each in fields))
        blocks = list(dict.fromkeys(each.trial.block for each in fields))
        levers = [
            Lever("SWD", _within(fields, [e.name for e in arena.entries if e.stable])),
            Lever("a gate", _within(fields, [e.name for e in arena.entries if e.gated])),
            *(Lever(f"EOS {p}", _between(fields, "eos", policies[0], p)) for p in policies[1:]),
            *(
                Lever("the full window" if b is None else f"blocks of {b}",
                      _between(fields, "block", blocks[0], b))
                for b in blocks[1:]
            ),
        ]  # fmt: skip
        return cls(tuple(lever for lever in levers if lever.costs))

    @cached_property
    def holm(self) -> dict[tuple[str, str], float]:
        """The corrected p of every comparison, by lever and field."""
        keys = [(lever.name, field) for lever in self.each for field in lever.costs]
        ps = [cost.p for lever in self.each for cost in lever.costs.values()]
        return dict(zip(keys, holm(ps), strict=True))

    def starred(self, lever: Lever, sign: int) -> list[str]:
        """The fields where a choice is better (1) or worse (-1) by more than chance."""
        return [
            f"{field} ({points(cost.difference)})"
            for field, cost in lever.costs.items()
            if self.holm[lever.name, field] < LEVEL and sign * cost.difference > 0
        ]

    def sentences(self) -> list[str]:
        """One sentence on each choice, the best first."""
        ordered = sorted(self.each, key=lambda lever: -lever.mean)
        return [self._sentence(lever) for lever in ordered]

    def _sentence(self, lever: Lever) -> str:
        better, worse = self.starred(lever, 1), self.starred(lever, -1)
        where = [
            f"{word} with a star in {'; '.join(some)}"
            for word, some in (("better", better), ("worse", worse))
            if some
        ]
        name = lever.name[0].upper() + lever.name[1:]
        tasks = ", ".join(f"{task} {points(mean)}" for task, mean in lever.by_task.items())
        return (
            f"{name}: {points(lever.mean)} points, mean of "
            f"{counted(len(lever.costs), 'field')} ({tasks}); "
            f"{', and '.join(where) or 'no difference has a star'}."
        )

    @property
    def stars(self) -> str:
        """What a star means."""
        return f"* {star_rule(len(self.holm), 'The p of a sign-flip test')}"


def plain(field: Field) -> Contestant:
    """The best rule of a field with neither memory nor a gate."""
    some = [c for c in field.contestants if not (c.entry.remembers or c.entry.gated)]
    return best_of(some or field.contestants)


def _within(fields: Iterable[Field], names: list[str]) -> dict[str, EqualCost]:
    """The best of the named rules against the plain one, in every field."""
    costs = {}
    for field in fields:
        some = [each for each in field.contestants if each.entry.name in names]
        if some:
            costs[field.title] = at_equal_cost(plain(field).curve, best_of(some).curve)
    return costs


def _between(
    fields: Iterable[Field], name: str, without: object, chosen: object
) -> dict[str, EqualCost]:
    """The best plain rule with the choice against the best without it, in every other field."""
    kept = "block" if name == "eos" else "eos"
    by_place = {
        (each.trial.task, getattr(each.trial, kept), getattr(each.trial, name)): each
        for each in fields
    }
    costs = {}
    for (task, same, value), field in by_place.items():
        if value == without and (task, same, chosen) in by_place:
            tried = by_place[task, same, chosen]
            costs[field.title] = at_equal_cost(plain(field).curve, plain(tried).curve)
    return costs
