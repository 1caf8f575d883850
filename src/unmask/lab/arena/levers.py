"""What pays: SWD, a gate, an EOS policy or a block, each against the same task without it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import numpy as np

from unmask.lab.arena.contest import Arena, Contestant, Field, best_of
from unmask.lab.equal_cost import RuleCurve, gains_at_equal_cost
from unmask.lab.report.wording import listed, points, points_span
from unmask.lab.stats import LEVEL, Array, Interval, bootstrap_mean, holm, sign_flip, star_rule


@dataclass(frozen=True)
class Contrast:
    """What a choice changes at equal forwards: in one field, or on average in several."""

    task: str
    field: str  # without the choice
    rules: str  # without and with it
    gains: Array  # of every example, in [-1, 1]: [N]

    @property
    def difference(self) -> float:
        return float(self.gains.mean())

    @cached_property
    def interval(self) -> Interval:
        return bootstrap_mean(self.gains).interval

    @cached_property
    def p(self) -> float:
        return sign_flip(self.gains)


@dataclass(frozen=True)
class Lever:
    """One choice, and what it changes in every field where it can be made."""

    name: str
    contrasts: tuple[Contrast, ...]

    @property
    def mean(self) -> float:
        """The mean difference at equal forwards, in [-1, 1]."""
        return fmean(each.difference for each in self.contrasts)

    @cached_property
    def by_task(self) -> dict[str, Contrast]:
        """The mean over the fields of each task; they have the same examples."""
        members: dict[str, list[Contrast]] = {}
        for each in self.contrasts:
            members.setdefault(each.task, []).append(each)
        return {
            task: Contrast(task, "", "", np.mean([each.gains for each in some], axis=0))
            for task, some in members.items()
        }

    def apart(self, task: str) -> str:
        """The worst and the best field of a task, if one loses and the other gains; else nothing.

        Both differences are beyond chance, each by itself.
        """
        some = [each for each in self.contrasts if each.task == task and each.p < LEVEL]
        if not some:
            return ""
        worst, best = (pick(some, key=lambda each: each.difference) for pick in (min, max))
        if not worst.difference < 0 < best.difference:
            return ""
        ends = [f"{points(e.difference)} in {e.field.partition(', ')[2]}" for e in (worst, best)]
        return " to ".join(ends)


@dataclass(frozen=True)
class Levers:
    """All choices, with one correction for all tasks and choices."""

    each: tuple[Lever, ...]

    @classmethod
    def of(cls, arena: Arena) -> Levers:
        """Compare the best rule with a choice and the best without it.

        The rule without the choice has neither memory nor a gate; nor has the rule with another
        EOS policy or window. A policy or window is also tried with every such rule itself.
        """
        fields = arena.fields
        policies = list(dict.fromkeys(each.trial.eos for each in fields))
        blocks = list(dict.fromkeys(each.trial.block for each in fields))
        levers = [
            Lever("SWD", _within(fields, [e.name for e in arena.entries if e.stable])),
            Lever("a gate", _within(fields, [e.name for e in arena.entries if e.gated])),
        ]
        for policy in policies[1:]:
            levers += _changed(fields, "eos", (policies[0], policy), f"EOS {policy}")
        for block in blocks[1:]:
            name = "the full window" if block is None else f"blocks of {block}"
            levers += _changed(fields, "block", (blocks[0], block), name)
        return cls(tuple(lever for lever in levers if lever.contrasts))

    @cached_property
    def holm(self) -> dict[tuple[str, str], float]:
        """The corrected p of every choice and task."""
        keys = [(lever.name, task) for lever in self.each for task in lever.by_task]
        ps = [each.p for lever in self.each for each in lever.by_task.values()]
        return dict(zip(keys, holm(ps), strict=True))

    def sentences(self) -> list[str]:
        """When to make each choice, the one that gains most first."""
        ordered = sorted(self.each, key=lambda lever: -lever.mean)
        return [self._sentence(lever) for lever in ordered]

    def _sentence(self, lever: Lever) -> str:
        groups: dict[str, list[str]] = {}
        for task, each in lever.by_task.items():
            starred = self.holm[lever.name, task] < LEVEL
            figures = f"{points(each.difference)}{'*' if starred else ''}"
            text = f"{task} ({figures} {points_span(each.interval)})"
            advice = "use it for" if each.difference > 0 else "avoid it for"
            if apart := lever.apart(task):
                advice, text = "it depends on the field for", f"{text[:-1]}; {apart})"
            elif not starred:
                advice = "no difference is shown for"
            groups.setdefault(advice, []).append(text)
        parts = [f"{words} {listed(some)}" for words, some in groups.items()]
        return f"{lever.name[0].upper()}{lever.name[1:]}: {'; '.join(parts)}."

    @property
    def stars(self) -> str:
        """What a star means."""
        return f"* {star_rule(len(self.holm), 'The p of a sign-flip test')}"


def plain_ones(field: Field) -> Sequence[Contestant]:
    """The rules of a field with neither memory nor a gate, or all if there is none."""
    some = [c for c in field.contestants if not (c.entry.remembers or c.entry.gated)]
    return some or field.contestants


def _contrast(field: Field, rules: str, pairs: Sequence[tuple[RuleCurve, RuleCurve]]) -> Contrast:
    gains = np.mean([gains_at_equal_cost(*pair) for pair in pairs], axis=0)
    return Contrast(field.trial.task, field.title, rules, gains)


def _best_with_best(field: Field, before: Contestant, after: Contestant) -> Contrast:
    rules = f"{before.entry.name} -> {after.entry.name}"
    return _contrast(field, rules, [(before.curve, after.curve)])


def _within(fields: Iterable[Field], names: list[str]) -> tuple[Contrast, ...]:
    """The best of the named rules against the best plain one, in every field."""
    contrasts = []
    for field in fields:
        some = [each for each in field.contestants if each.entry.name in names]
        if some:
            contrasts.append(_best_with_best(field, best_of(plain_ones(field)), best_of(some)))
    return tuple(contrasts)


def _changed(
    fields: Iterable[Field], name: str, values: tuple[object, object], title: str
) -> list[Lever]:
    """A policy or window instead of the first one: with the best rule of each, and rule by rule."""
    kept = "block" if name == "eos" else "eos"
    by_place = {
        (each.trial.task, getattr(each.trial, kept), getattr(each.trial, name)): each
        for each in fields
    }
    best, same = [], []
    for (task, other, value), field in by_place.items():
        if value == values[0] and (task, other, values[1]) in by_place:
            tried = by_place[task, other, values[1]]
            before, after = plain_ones(field), plain_ones(tried)
            best.append(_best_with_best(field, best_of(before), best_of(after)))
            curves = {each.entry.name: each.curve for each in after}
            pairs = [(each.curve, curves[each.entry.name]) for each in before]
            same.append(_contrast(field, f"each of {len(pairs)} rules", pairs))
    return [Lever(title, tuple(best)), Lever(f"{title}, the same rule", tuple(same))]
