"""What the variants solve, each against the rule without its modulator and the whole rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from unmask.lab.dissect.plan import DissectionPlan
from unmask.lab.dissect.variants import Dissected, Variant
from unmask.lab.equal_cost import EqualCost, RuleCurve, at_equal_cost
from unmask.lab.stats import LEVEL, holm
from unmask.lab.summary import Summary
from unmask.lab.sweep.plan import Work

BASE, WHOLE = "base", "whole"


@dataclass(frozen=True)
class MeasuredVariant:
    """A variant and its trials."""

    variant: Variant
    curve: RuleCurve

    @property
    def summary(self) -> Summary:
        """The trial at the rule's own setting."""
        return self.curve.summaries[0]


@dataclass(frozen=True)
class VariantDifference:
    """One variant against another; Holm's correction counts all comparisons of the dissection."""

    measured: EqualCost
    p_holm: float

    @property
    def sign(self) -> int:
        """1 or -1 for a gain or loss that is shown, else 0."""
        if self.p_holm >= LEVEL:
            return 0
        return 1 if self.measured.difference > 0 else -1

    def record(self) -> dict[str, Any]:
        """For JSON; shares are in [0, 1]."""
        each = self.measured
        return {
            "difference": each.difference,
            "interval": list(each.interval),
            "p": each.p,
            "p_holm": self.p_holm,
            "forwards": [each.low, each.high],
        }


@dataclass(frozen=True)
class Dissection:
    """All variants on the same examples, and their differences."""

    dissected: Dissected
    measured: tuple[MeasuredVariant, ...]

    @classmethod
    def of(cls, plan: DissectionPlan, summaries: Mapping[str, Summary]) -> Dissection:
        """From the summaries of all trials, by their keys."""
        return cls(
            plan.dissected,
            tuple(
                MeasuredVariant(variant, _curve(variant, plan.works[variant.name], summaries))
                for variant in plan.dissected.variants
            ),
        )

    def __getitem__(self, name: str) -> MeasuredVariant:
        return next(each for each in self.measured if each.variant.name == name)

    @property
    def names(self) -> list[str]:
        return [each.variant.name for each in self.measured]

    @property
    def at_equal_forwards(self) -> bool:
        """Whether the variants were run along a curve; else each is compared at its own cost."""
        return any(len(each.curve.summaries) > 1 for each in self.measured)

    @cached_property
    def differences(self) -> dict[tuple[str, str], VariantDifference]:
        """Every comparison, by the names of the first and the second variant."""
        others = [name for name in self.names if name not in (BASE, WHOLE)]
        pairs = [(BASE, WHOLE), *((first, name) for name in others for first in (BASE, WHOLE))]
        costs = [at_equal_cost(self[first].curve, self[second].curve) for first, second in pairs]
        corrected = holm([each.p for each in costs])
        results = (VariantDifference(*each) for each in zip(costs, corrected, strict=True))
        return dict(zip(pairs, results, strict=True))

    @property
    def gain(self) -> VariantDifference:
        """The whole rule against the rule without its modulator."""
        return self.differences[BASE, WHOLE]

    def share(self, name: str) -> float:
        """The share of the whole rule's gain that a variant has."""
        return self.differences[BASE, name].measured.difference / self.gain.measured.difference


def _curve(variant: Variant, works: Sequence[Work], summaries: Mapping[str, Summary]) -> RuleCurve:
    return RuleCurve(variant.words, tuple(summaries[work.trial.key] for work in works))
