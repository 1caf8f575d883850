"""Rules at equal cost: which are on the front, and what one gains on another at equal forwards."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unmask.errors import LabError
from unmask.lab.stats import Array, Interval, bootstrap_mean, sign_flip
from unmask.lab.summary import Summary, why_not


def front(summaries: Sequence[Summary]) -> list[Summary]:
    """The trials that no other one dominates, from the fewest forwards to the most.

    A trial dominates another if it is at least as accurate with at most as many forwards, and
    better in one of the two. Of equal trials all stay.
    """
    places = [(each.mean("nfe"), each.accuracy()) for each in summaries]

    def dominated(nfe: float, accuracy: float) -> bool:
        return any(
            other <= nfe and right >= accuracy and (other, right) != (nfe, accuracy)
            for other, right in places
        )

    kept = [pair for pair in zip(places, summaries, strict=True) if not dominated(*pair[0])]
    return [each for _, each in sorted(kept, key=lambda pair: pair[0])]


@dataclass(frozen=True)
class RuleCurve:
    """One rule at several values of a knob, or at one, on the same examples.

    Between two settings the curve is their mixture: a share of the answers is decoded with one and
    the rest with the other. The mixture has every mean of forwards in between, and its expected
    accuracy is on the line between the two. So rules with different knobs can be compared at equal
    forwards, example by example.
    """

    name: str
    summaries: tuple[Summary, ...]

    def __post_init__(self) -> None:
        if not self.summaries:
            raise LabError(f"the curve of {self.name} has no trial")
        for each in self.summaries[1:]:
            if reason := why_not(self.summaries[0], each):
                raise LabError(f"the trials of {self.name} cannot form a curve: {reason}")

    @cached_property
    def settings(self) -> tuple[Summary, ...]:
        """The trials in the order of their forwards; of several at the same cost, the best."""
        ordered = sorted(self.summaries, key=lambda each: (each.mean("nfe"), -each.accuracy()))
        groups = itertools.groupby(ordered, key=lambda each: each.mean("nfe"))
        return tuple(next(members) for _, members in groups)

    @cached_property
    def forwards(self) -> Array:
        """The mean forwards of each setting, ascending: [S]."""
        return np.array([each.mean("nfe") for each in self.settings])

    @cached_property
    def _solved(self) -> Array:
        """Whether each setting solved each example: [S, N]."""
        return np.array([each.solved() for each in self.settings], dtype=np.float64)

    def solved_at(self, forwards: float) -> Array | None:
        """The chance that each example is solved at this mean of forwards: [N].

        None if even the cheapest setting needs more. A rule that never spends as much gets its
        most expensive setting.
        """
        costs = self.forwards
        if forwards < costs[0]:
            return None
        if forwards >= costs[-1]:
            return np.asarray(self._solved[-1])
        after = int(np.searchsorted(costs, forwards, side="right"))
        share = (forwards - costs[after - 1]) / (costs[after] - costs[after - 1])
        return np.asarray((1 - share) * self._solved[after - 1] + share * self._solved[after])

    def mean_over(self, low: float, high: float) -> Array:
        """The chance of each example to be solved, averaged over a range of forwards: [N].

        The curve is made of straight lines, so the mean over each of its pieces is exact.
        """
        inside = [cost for cost in self.forwards if low < cost < high]
        places = [low, *inside, high]
        chances = [self.solved_at(place) for place in places]
        if any(each is None for each in chances):
            raise LabError(f"{self.name} needs more than {low:g} forwards")
        values = np.array(chances)  # [P, N]
        if low == high:
            return np.asarray(values[0])
        widths = np.diff(places)[:, None]  # [P - 1, 1]
        return np.asarray(((values[1:] + values[:-1]) / 2 * widths).sum(0) / (high - low))


@dataclass(frozen=True)
class EqualCost:
    """The second rule against the first at equal forwards, averaged over a range of forwards."""

    low: float  # the range: where both rules have settings; one place if there is none
    high: float
    first: float  # mean accuracy of the first rule over the range, in [0, 1]
    second: float
    interval: Interval  # of the difference, by bootstrap over examples
    p: float  # two-sided sign-flip test over examples; McNemar's where both have one setting

    @property
    def difference(self) -> float:
        """How much more the second rule solves, in [-1, 1]."""
        return self.second - self.first


def at_equal_cost(first: RuleCurve, second: RuleCurve) -> EqualCost:
    """Compare two rules over the forwards that both can be run with.

    If the most expensive setting of one needs fewer forwards than the cheapest of the other, these
    two settings are compared: the one rule could spend more, but gains nothing from it.
    """
    _check_alike(first, second)
    low, high = _shared(first, second)
    before, after = first.mean_over(low, high), second.mean_over(low, high)
    gained = after - before  # [N]
    interval, p = bootstrap_mean(gained).interval, sign_flip(gained)
    return EqualCost(low, high, float(before.mean()), float(after.mean()), interval, p)


def gains_at_equal_cost(first: RuleCurve, second: RuleCurve) -> Array:
    """How much more of each example the second rule solves at equal forwards, in [-1, 1]: [N]."""
    _check_alike(first, second)
    shared = _shared(first, second)
    return second.mean_over(*shared) - first.mean_over(*shared)


def _check_alike(first: RuleCurve, second: RuleCurve) -> None:
    if reason := why_not(first.settings[0], second.settings[0]):
        raise LabError(f"{first.name} and {second.name} cannot be compared: {reason}")


def strongest(curves: Sequence[RuleCurve]) -> int:
    """The number of the rule that gains most on the others at equal forwards, on average."""

    def gain(mine: RuleCurve) -> float:
        return sum(float(gains_at_equal_cost(other, mine).mean()) for other in curves)

    gains = [gain(curve) for curve in curves]
    return gains.index(max(gains))


def _shared(first: RuleCurve, second: RuleCurve) -> tuple[float, float]:
    """The forwards that both rules can be run with; one place if they share none."""
    low = float(max(first.forwards[0], second.forwards[0]))
    return low, max(low, float(min(first.forwards[-1], second.forwards[-1])))
