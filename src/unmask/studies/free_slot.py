"""Checks what the free position of an entropy bound costs, exactly on random small joints.

x_C is known, and a step commits the positions S at once, each by its own p(x_i | x_C). One of them,
f, is free: only the entropies of the others count. Everything is enumerated, in nats, for every
x_C and every f of S.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np

from unmask.studies.theory import BATCH, KINDS, Array, Bools, Rng, random_joints

SIDES = 64  # of the die in the counter-example


class FreeMeasures(NamedTuple):
    """What a step loses, and its bounds, of N pairs of x_C and f: [N] each."""

    loss: Array  # KL(p(x_S | x_C) || product of the p(x_i | x_C)): what independent draws lose
    others: Array  # sum of H(x_i | x_C) over S without f: the bound on it
    miss: Array  # P(some likeliest token of S without f is wrong | x_C)
    given: Array  # the same, given that x_f is its likeliest token
    sure: Array  # the probability of that token


@dataclass(frozen=True)
class FreeSlotResult:
    """Counts and largest violations of the three bounds over all cases."""

    cases: int
    sampling_violation: float  # of loss <= others
    miss_violation: float  # of miss <= others / (2 log 2)
    given_violation: float  # of given <= others / (2 log 2) / sure
    exceeds: int  # cases where given is above others / (2 log 2): f is not free for the likeliest
    die_entropy: float  # H of the other position in the counter-example

    @property
    def largest_violation(self) -> float:
        """The largest violation of any bound; NaN if one is NaN."""
        each = (self.sampling_violation, self.miss_violation, self.given_violation)
        return float(np.max(each))


def check_free_slot(cases: int = 5000, seed: int = 0) -> FreeSlotResult:
    """Measure random joints; a case is a joint with its known, committed and other positions."""
    rng = np.random.default_rng(seed)
    batches = []
    for batch, start in enumerate(range(0, cases, BATCH)):
        joints = random_joints(KINDS[batch % len(KINDS)], min(BATCH, cases - start), rng)
        batches += [measure_free(joint) for joint in _with_committed(joints, rng)]
    return _tally(batches)


def measure_free(joint: Array) -> FreeMeasures:
    """Measure p(x_C, x_1, ..., x_k) of shape [C, K, ..., K] for every x_C and every free f."""
    context = joint.sum(tuple(range(1, joint.ndim)))
    known = joint[context > 0] / context[context > 0].reshape(-1, *[1] * (joint.ndim - 1))
    size = joint.ndim - 1
    parts = [_marginal(known, [i]) for i in range(size)]  # [C, K] each
    independent = np.ones_like(known)
    for i, part in enumerate(parts):
        independent = independent * np.expand_dims(part, [j + 1 for j in range(size) if j != i])
    loss = _expected(known, np.log(_or_one(known)) - np.log(_or_one(independent)))
    entropies = np.stack([-_expected(part, np.log(_or_one(part))) for part in parts])  # [k, C]
    right = [_is_likeliest(part, i, size) for i, part in enumerate(parts)]
    rows = [_freed(known, loss, entropies, right, f) for f in range(size)]
    return FreeMeasures(*(np.concatenate(column) for column in zip(*rows, strict=True)))


def _freed(
    known: Array, loss: Array, entropies: Array, right: Sequence[Bools], f: int
) -> FreeMeasures:
    """The measures for every x_C where position f is free."""
    wrong = np.zeros(known.shape, dtype=bool)
    for i, likeliest in enumerate(right):
        wrong |= ~likeliest if i != f else False
    axes = tuple(range(1, known.ndim))
    sure = (known * right[f]).sum(axes)
    return FreeMeasures(
        loss=loss,
        others=entropies.sum(0) - entropies[f],
        miss=(known * wrong).sum(axes),
        given=(known * (wrong & right[f])).sum(axes) / sure,
        sure=sure,
    )


def _is_likeliest(part: Array, place: int, size: int) -> Bools:
    """True where the token at this place is its likeliest one, to broadcast: [C, 1, K, 1]."""
    likeliest = np.arange(part.shape[1]) == part.argmax(1)[:, None]
    spread: Bools = np.expand_dims(likeliest, [j + 1 for j in range(size) if j != place])
    return spread


def _marginal(known: Array, kept: list[int]) -> Array:
    gone = tuple(axis for axis in range(1, known.ndim) if axis - 1 not in kept)
    marginal: Array = known.sum(gone)
    return marginal


def _expected(weight: Array, value: Array) -> Array:
    mean: Array = (weight * value).sum(tuple(range(1, weight.ndim)))
    return mean


def _or_one(p: Array) -> Array:
    return np.where(p > 0, p, 1.0)


def _with_committed(joints: Array, rng: Rng) -> Iterator[Array]:
    """Joints [N, K, ..., K] with random roles: known, committed (at least two), and the rest."""
    tokens, length = joints.shape[1], joints.ndim - 1
    committed = int(rng.integers(2, length + 1))
    known = int(rng.integers(0, length - committed + 1))
    dealt = joints.transpose(0, *(1 + rng.permutation(length)))
    shape = (len(joints), tokens**known, *[tokens] * committed, -1)
    yield from dealt.reshape(shape).sum(-1)


def _tally(batches: Sequence[FreeMeasures]) -> FreeSlotResult:
    exceeds, violations = 0, np.zeros(3)
    for m in batches:
        wrong = m.others / (2 * log(2))
        gaps = (m.loss - m.others, m.miss - wrong, m.given - wrong / m.sure)
        violations = np.maximum(violations, [gap.max() for gap in gaps])
        exceeds += bool((m.given > wrong + 1e-9).any())
    sampling, miss, given = violations.tolist()
    return FreeSlotResult(len(batches), sampling, miss, given, exceeds, _die_entropy())


def _die_entropy() -> float:
    """H of a bit that is 1 for exactly one side of a fair die."""
    one = 1 / SIDES
    return -one * log(one) - (1 - one) * log(1 - one)


def free_slot_lines(result: FreeSlotResult) -> Iterator[str]:
    """The report as text."""
    impossible = 2 * (1 / SIDES) * (1 - 1 / SIDES)
    text = FREE_SUMMARY.format(result=result, sides=SIDES, impossible=impossible)
    yield from text.splitlines()


FREE_SUMMARY = """
The free position of eb, on {result.cases} random joints. C is known, a step commits S at once,
and f is any position of S. E is the sum of H(x_i | x_C) over S without f, which eb limits by gamma.
  Sampling  KL(p(x_S | x_C) || independent draws) <= E, whatever the entropy of f
  Argmax    P(a likeliest token of S without f is wrong | x_C) <= E / (2 log 2)
            given x_f = y_f, its likeliest token: <= E / (2 log 2) / p(y_f | x_C)
  Largest violation of the three: {result.largest_violation:.1e} (below 1e-9: rounding)
So f is free for draws. For likeliest tokens its price is the factor 1 / p(y_f | x_C): without it,
the last bound fails for some x_C and f in {result.exceeds} cases.

Counter-example: f is a fair die with {sides} sides, and x_i = 1 for the first side alone.
H(x_i) = {result.die_entropy:.4f}, so eb(0.1) commits both. Some pairs cannot be: draws give one
in {impossible:.1%} of the cases, the likeliest tokens in all: the first side (a tie), and 0.
"""
