"""The trials of a dissection: one for each variant, and more along the selection's knob."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unmask.lab.benchmarks import benchmark
from unmask.lab.dissect.variants import (
    Dissected,
    Variant,
    modulator_of,
    take_apart,
    with_knob,
    without_recipe,
)
from unmask.lab.sweep.grid import Setting
from unmask.lab.sweep.plan import Sessions, Work, work_of


@dataclass(frozen=True)
class DissectionPlan:
    """The trials of every variant: at its own setting, then along the curve."""

    dissected: Dissected
    works: Mapping[str, tuple[Work, ...]]  # by the variant's name

    @property
    def every(self) -> list[Work]:
        """Each trial once."""
        every = {work.trial.key: work for works in self.works.values() for work in works}
        return list(every.values())


def plan_dissection(
    setting: Setting, data: Path | None, modulator: str | None = None, curve: Sequence[str] = ()
) -> DissectionPlan:
    """Take the rule of a setting apart, as far as is possible without weights.

    Args:
        setting: the whole rule, its task and its model.
        data: folder of the benchmarks' JSON lines.
        modulator: the name of one of several modulators.
        curve: more values of the first knob of the selection, for all variants.
    """
    setting = replace(setting, options=without_recipe(setting.options))
    rule = setting.options.parsed_rule
    part = modulator_of(rule, modulator)
    examples, session = benchmark(setting.task).load(data), Sessions().of(setting)
    whole = work_of(setting, session, examples)
    whole.request(whole.asks[0])  # wrong settings fail here, before anything is loaded
    dissected = take_apart(rule, part, session.spec, whole.trial.eos)
    works = {}
    for variant in dissected.variants:
        rules = [variant.rule, *(with_knob(variant.rule, value) for value in curve)]
        works[variant.name] = tuple(
            work_of(_varied(setting, variant, text), session, examples)
            for text in dict.fromkeys(map(str, rules))
        )
    return DissectionPlan(dissected, works)


def _varied(usual: Setting, variant: Variant, rule: str) -> Setting:
    options = replace(usual.options, rule=rule, eos=variant.eos or usual.options.eos)
    return replace(usual, options=options)
