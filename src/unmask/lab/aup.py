"""Accuracy under parallelism (AUP, of d3LLM), and two simpler numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unmask.errors import LabError
from unmask.lab.stats import Interval

Floats = NDArray[np.float64]

ALPHA = 3.0  # how fast the weight falls with lost accuracy
MOST_LOST = 5.0  # points below the slowest setting; a point that loses more is dropped


@dataclass(frozen=True)
class RatePoint:
    """One setting: tokens per forward, and accuracy in percent."""

    rate: float
    accuracy: float
    name: str = ""


@dataclass(frozen=True)
class Area:
    """AUP and the points it was computed from."""

    value: float
    kept: tuple[RatePoint, ...]
    dropped: tuple[RatePoint, ...]
    best: float  # accuracy in percent of the best method that is compared


def aup(points: Sequence[RatePoint], best: float | None = None, alpha: float = ALPHA) -> Area:
    """r1 y1 + the sum of (r_i - r_{i-1}) (y_i W(y_i) + y_{i-1} W(y_{i-1})) / 2.

    W(y) = min(exp(-alpha (1 - y / best)), 1). Points more than 5 below the slowest one are dropped.
    The first term carries no weight, as in the leaderboard's code.

    Args:
        points: of one method on one task, in any order.
        best: the best accuracy on the task over all methods compared; None: of these points.
        alpha: 3 in the leaderboard.
    """
    ordered = sorted(points, key=lambda point: (point.rate, -point.accuracy))
    if not ordered:
        raise LabError("AUP needs at least one point, got none")
    for point in ordered:
        if not (point.rate > 0 and 0 <= point.accuracy <= 100):
            raise LabError(f"a point needs a rate > 0 and an accuracy in 0..100, got {point}")
    least = ordered[0].accuracy - MOST_LOST
    kept = tuple(point for point in ordered if point.accuracy >= least)
    dropped = tuple(point for point in ordered if point.accuracy < least)
    greatest = max(point.accuracy for point in ordered)
    if best is not None and best < greatest:
        raise LabError(f"best must be at least the accuracy of every point, got {best}")
    most = greatest if best is None else best
    rates = np.array([[point.rate for point in ordered]])
    accuracies = np.array([[point.accuracy for point in ordered]])
    value = float(_areas(rates, accuracies, np.array([most]), alpha)[0])
    return Area(value, kept, dropped, most)


def _areas(rates: Floats, accuracies: Floats, best: Floats, alpha: float = ALPHA) -> Floats:
    """AUP of K curves of S settings at once: [K, S], [K, S], [K] -> [K]."""
    order = np.lexsort((-accuracies, rates), axis=-1)
    speed = np.take_along_axis(rates, order, -1)
    right = np.take_along_axis(accuracies, order, -1)
    share = right / np.where(best > 0, best, 1)[:, None]  # if the best is 0, all are 0
    weighed = right * np.minimum(np.exp(-alpha * (1 - share)), 1)
    value = speed[:, 0] * right[:, 0]
    last_speed, last_weighed = speed[:, 0], weighed[:, 0]
    for s in range(1, speed.shape[1]):
        kept = right[:, s] >= right[:, 0] - MOST_LOST
        step = (speed[:, s] - last_speed) * (weighed[:, s] + last_weighed) / 2
        value = np.where(kept, value + step, value)
        last_speed = np.where(kept, speed[:, s], last_speed)
        last_weighed = np.where(kept, weighed[:, s], last_weighed)
    return value


def aup_interval(
    rates: Sequence[Sequence[float]],
    solved: Sequence[Sequence[bool]],
    best: float | None = None,
    level: float = 0.95,
    samples: int = 2_000,
    seed: int = 0,
) -> Interval:
    """Bootstrap interval over the examples that all settings share: [settings][examples] each."""
    speed, right = np.asarray(rates, float), np.asarray(solved, float)  # [S, N]
    if speed.shape != right.shape or speed.ndim != 2 or not speed.size:
        raise LabError("every setting needs a rate and a verdict for each of the same examples")
    drawn = np.random.default_rng(seed).integers(0, speed.shape[1], (samples, speed.shape[1]))
    rate = np.stack([each[drawn].mean(1) for each in speed], 1)  # [samples, S]
    accuracy = np.stack([100 * each[drawn].mean(1) for each in right], 1)
    if rate.min() <= 0:
        raise LabError("every setting needs a rate > 0")
    values = _areas(rate, accuracy, np.maximum(accuracy.max(1), best or 0.0))
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def accuracy_at(points: Sequence[RatePoint], rate: float) -> float | None:
    """Accuracy at so many tokens per forward, on the line between two points; None outside."""
    ordered = sorted(points, key=lambda point: point.rate)
    for before, after in itertools.pairwise(ordered):
        if before.rate <= rate <= after.rate:
            if before.rate == after.rate:
                return max(before.accuracy, after.accuracy)
            share = (rate - before.rate) / (after.rate - before.rate)
            return before.accuracy + share * (after.accuracy - before.accuracy)
    return None


def rate_within(points: Sequence[RatePoint], lost: float = 1.0) -> float:
    """The greatest rate whose accuracy is at most `lost` points below the slowest one's."""
    ordered = sorted(points, key=lambda point: (point.rate, -point.accuracy))
    if not ordered:
        raise LabError("a rate needs at least one point, got none")
    least = ordered[0].accuracy - lost
    return max(point.rate for point in ordered if point.accuracy >= least)
