"""Rank correlations over positions, pooled and within canvases, with intervals over prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
SAMPLES = 1000  # of the bootstrap


class RankedCanvas(NamedTuple):
    """The positions of one canvas: what predicts, and the dependence to predict; [M] each."""

    prompt: int
    entropy: Array
    moved: Array
    moved_back: Array
    dependence: Array


class Estimate(NamedTuple):
    """A correlation in [-1, 1] and its 95% interval, by bootstrap over prompts."""

    value: float
    low: float
    high: float


class Correlation(NamedTuple):
    """Spearman's correlation of a predictor with the remaining dependence."""

    within: Estimate  # the mean over canvases of the correlation within each: how a rule ranks
    pooled: Estimate  # over the positions of all canvases at once: how one threshold cuts


class Correlations(NamedTuple):
    """What predicts the remaining dependence of a position, and how well."""

    positions: int
    entropy: Correlation  # H
    moved: Correlation  # D = KL(previous || current)
    moved_back: Correlation  # KL(current || previous)
    moved_given_entropy: Correlation  # D with H held fixed
    entropy_given_moved: Correlation  # H with D held fixed


def correlations(canvases: Sequence[RankedCanvas]) -> Correlations:
    """Correlate within each canvas and over all of them; a canvas has several positions."""
    by_prompt: dict[int, list[RankedCanvas]] = {}
    for each in canvases:
        by_prompt.setdefault(each.prompt, []).append(each)
    groups = list(by_prompt.values())
    inside = [np.array([_predictors(each) for each in members]) for members in groups]  # [C, 5]
    whole = [_joined(members) for members in groups]
    within = _estimates(len(groups), lambda some: np.concatenate([inside[i] for i in some]).mean(0))
    pooled = _estimates(len(groups), lambda some: _predictors(_joined([whole[i] for i in some])))
    count = sum(len(each.entropy) for each in canvases)
    return Correlations(count, *map(Correlation, within, pooled))


def spearman(first: Array, second: Array) -> float:
    """Pearson's correlation of the ranks; 0 if one of them has a single value."""
    a, b = (ranks(each) - (len(each) - 1) / 2 for each in (first, second))
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale else 0.0


def partial(wanted: float, other: float, between: float) -> float:
    """The correlation with a third variable held fixed, from the three plain ones.

    `wanted` is that of predictor and target, `other` that of the fixed variable and the target,
    `between` that of predictor and fixed variable. It is 0 if nothing is left to vary.
    """
    scale = float(np.sqrt(max(0.0, (1 - other**2) * (1 - between**2))))
    return (wanted - other * between) / scale if scale > 1e-12 else 0.0


def ranks(values: Array) -> Array:
    """Ranks from 0; equal values share the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    mean: Array = last - (counts + 1) / 2
    return mean[place.reshape(-1)]


def _predictors(each: RankedCanvas) -> Array:
    """The correlations of one set of positions, in the order of `Correlations`: [5]."""
    h, d, back = (
        spearman(column, each.dependence) for column in (each.entropy, each.moved, each.moved_back)
    )
    between = spearman(each.entropy, each.moved)
    return np.array([h, d, back, partial(d, h, between), partial(h, d, between)])


def _joined(canvases: Sequence[RankedCanvas]) -> RankedCanvas:
    _, *columns = zip(*canvases, strict=True)
    return RankedCanvas(-1, *(np.concatenate(column) for column in columns))


def _estimates(prompts: int, statistic: Callable[[Sequence[int]], Array]) -> list[Estimate]:
    """A statistic of some prompts, [5], with the 2.5% and 97.5% points over resampled prompts."""
    drawn = np.random.default_rng(0).integers(0, prompts, size=(SAMPLES, prompts))
    values = np.array([statistic(sample.tolist()) for sample in drawn])
    low, high = np.quantile(values, (0.025, 0.975), axis=0)
    columns = zip(statistic(range(prompts)), low, high, strict=True)
    return [Estimate(*map(float, each)) for each in columns]
