"""Statistics of rules compared over the same problems: intervals and an exact test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unmask.errors import RequestError

Array: TypeAlias = NDArray[np.float64]
LEVEL = 0.05  # a comparison has a star if Holm's corrected p is below it


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


class Mean(NamedTuple):
    """A mean over problems and its bootstrap interval."""

    mean: float
    interval: Interval


@dataclass(frozen=True)
class Paired:
    """How the second rule differs from the first over the same problems; shares are in [0, 1]."""

    difference: float  # share solved by the second, less that of the first, in [-1, 1]
    interval: Interval  # of the difference, by bootstrap over problems
    only_first: int  # problems that the first alone solved
    only_second: int  # problems that the second alone solved
    p: float  # exact two-sided McNemar, in (0, 1]


def wilson(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Wilson's score interval of a share: all q with |successes / trials - q| <= z sd(q).

    It stays within [0, 1] and keeps a width at 0 and at `trials` successes.
    """
    _check_level(level)
    if trials < 1:
        raise RequestError(f"an interval needs at least one trial, got {trials}")
    if not 0 <= successes <= trials:
        raise RequestError(f"successes must be in [0, {trials}], got {successes}")
    z = NormalDist().inv_cdf((1 + level) / 2)
    return Interval(
        _wilson_low(successes, trials, z), 1 - _wilson_low(trials - successes, trials, z)
    )


def paired(
    first: Sequence[bool],
    second: Sequence[bool],
    level: float = 0.95,
    samples: int = 10_000,
    seed: int = 0,
) -> Paired:
    """Compare two rules, given which problems each solved, in the same order.

    A bootstrap only draws outcomes that occurred: without a discordant problem the interval is
    (0, 0), and with fewer than about five it is too narrow. `p` is exact at any size.

    Args:
        first, second: whether the rule solved problem i.
        level: the share of intervals that should hold the true difference.
        samples: number of bootstrap samples.
        seed: of those draws; the same seed gives the same interval.
    """
    if len(first) != len(second):
        raise RequestError(
            f"the rules must answer the same problems, got {len(first)} and {len(second)} outcomes"
        )
    differences = _solved(second) - _solved(first)  # [N] of -1, 0, +1
    mean, interval = bootstrap_mean(differences, level, samples, seed)
    only_first, only_second = int((differences < 0).sum()), int((differences > 0).sum())
    return Paired(mean, interval, only_first, only_second, mcnemar(only_first, only_second))


def bootstrap_mean(
    differences: Sequence[float] | Array, level: float = 0.95, samples: int = 10_000, seed: int = 0
) -> Mean:
    """The mean of paired differences, such as of NFE, with its percentile interval over problems.

    The high end is minus the low end of the negated differences. So negated differences give
    exactly the negated interval.
    """
    _check_level(level)
    if samples < 1 or seed < 0:
        raise RequestError(f"samples must be >= 1 and seed >= 0, got {samples} and {seed}")
    values = np.asarray(differences, dtype=np.float64)  # [N]
    if not values.size:
        raise RequestError("a comparison needs at least one problem, got none")
    if values.ndim != 1 or not np.isfinite(values).all():
        raise RequestError("a comparison needs one finite number per problem")
    low = _lower_end(values, level, samples, seed)
    high = 0.0 - _lower_end(-values, level, samples, seed)  # 0.0 - x: never a negative zero
    return Mean(float(values.mean()), Interval(low, high))


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided McNemar, min(1, 2 P(X <= fewer)) for X ~ Binomial(discordant, 1/2)."""
    if min(only_first, only_second) < 0:
        raise RequestError(f"counts must be >= 0, got {only_first} and {only_second}")
    discordant, fewer = only_first + only_second, min(only_first, only_second)
    ways = total = 1  # C(discordant, i) from i = 0 on, and their sum, in whole numbers
    for i in range(fewer):
        ways = ways * (discordant - i) // (i + 1)
        total += ways
    return min(1.0, 2 * total / (1 << discordant))


def sign_flip(differences: Sequence[float] | Array, samples: int = 10_000, seed: int = 0) -> float:
    """Two-sided p of paired differences if the sign of each is a fair coin.

    It asks how often random signs give a sum at least as far from 0. If all differences that are
    not 0 have one size, this is McNemar's exact test; else signs are drawn, and the p of n draws
    is never below 1 / (n + 1).
    """
    values = np.asarray(differences, dtype=np.float64)
    sizes = np.abs(values[values != 0])  # [K]
    if not sizes.size:
        return 1.0
    if np.allclose(sizes, sizes[0]):
        return mcnemar(int((values < 0).sum()), int((values > 0).sum()))
    rng = np.random.default_rng(seed)
    signs = rng.integers(0, 2, size=(samples, sizes.size), dtype=np.int8) * 2 - 1
    reached = np.abs(signs @ sizes) >= abs(values.sum()) - 1e-9 * sizes.sum()
    return float((1 + reached.sum()) / (1 + samples))


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's corrected p of several tests, in their order; valid under any dependence.

    The i-th smallest of n becomes the largest of (n - j) p_j for j <= i: rejecting what stays below
    a level keeps the chance of any false rejection below it.
    """
    corrected, most = [0.0] * len(ps), 0.0
    for place, i in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        most = max(most, min(1.0, (len(ps) - place) * ps[i]))
        corrected[i] = most
    return corrected


def starred(ps: Sequence[float]) -> list[bool]:
    """Which of several comparisons have a star: Holm's corrected p is below 0.05.

    The same rule holds for every table. Without any effect, the chance of a single star among all
    comparisons is below 0.05.
    """
    return [p < LEVEL for p in holm(ps)]


def star_rule(count: int, test: str = "McNemar's exact p") -> str:
    """What a star means in a table with `count` comparisons."""
    of = "the one comparison" if count == 1 else f"all {count} comparisons"
    return f"{test} is below {LEVEL:g} after Holm's correction for {of}"


def _wilson_low(successes: int, trials: int, z: float) -> float:
    """The smaller root: the product of both over the larger one, so 0 at no successes."""
    share, half = successes / trials, z / (2 * trials)
    spread = math.sqrt(share * (1 - share) / trials + half * half)
    return share * share / (share + z * (half + spread))


def _lower_end(values: Array, level: float, samples: int, seed: int) -> float:
    """The lower percentile of resampled means.

    Drawing problems with replacement is drawing how often each distinct value occurs, so the cost
    goes with the number of distinct values: three for solved or not.
    """
    distinct, counts = np.unique(values, return_counts=True)  # [K] each
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(values.size, counts / values.size, size=samples)  # [samples, K]
    return float(np.quantile(drawn @ distinct / values.size, (1 - level) / 2))


def _solved(outcomes: Sequence[bool]) -> Array:
    solved = np.asarray(outcomes)  # [N]
    if solved.size and not (solved.dtype.kind in "biu" and np.isin(solved, (0, 1)).all()):
        raise RequestError("outcomes must be True or False; for other numbers use bootstrap_mean")
    return solved.astype(np.float64)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise RequestError(f"level must be between 0 and 1, got {level}")
