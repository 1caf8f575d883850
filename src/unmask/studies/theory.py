"""Checks Lemma 1 and the Sensitivity-Dependency Bound exactly on random small joints.

Position i is masked, x_C is known before the step, and the step reveals x_R. U are all masked
positions except i, so R is part of U. Everything is enumerated in float64 and given in nats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unmask.decoding.options import MOST
from unmask.errors import UnmaskError

Array: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Rng: TypeAlias = np.random.Generator

TOLERANCE = 1e-9  # a larger violation is not rounding
BATCH = 5  # joints of the same size and with the same roles of positions
KINDS = ("dense", "sparse", "copies", "parity")
NOISE = (0.0, 1e-6, 1e-3, 0.1)  # probability mass outside a joint's support; 0: exact zeros
NOISY_COPY = ((0.49, 0.01), (0.01, 0.49))  # p(x_i, x_R): the counter-example


class JointMeasures(NamedTuple):
    """Both directions of the KL, and the information measures they compare with: [N] each."""

    forward: Array  # E KL(current || previous), from conditionals: the lemma's D
    reverse: Array  # E KL(previous || current): Algorithm 1's D; inf if a token is ruled out
    single: Array  # the largest KL(current || previous) of one outcome (x_C, x_R)
    gain: Array  # I(x_i; x_R | x_C), from joint entropies
    mutual: Array  # I(x_i; x_U | x_C), from joint entropies
    entropy: Array  # H(x_i | x_C)
    partial: Bools  # True if more than i is still masked after the step


@dataclass(frozen=True)
class CaseTally:
    """Counts and largest violations over a number of cases."""

    cases: int
    equality_violation: float  # max |E KL(current || previous) - I(x_i; x_R | x_C)|
    bound_violation: float  # max of E KL(current || previous) - I(x_i; x_U | x_C), if > 0
    reverse_differs: int  # cases where E KL(previous || current) is not the gain
    reverse_exceeds: int  # cases where it is above I(x_i; x_U | x_C), infinite ones included
    reverse_infinite: int
    worst_excess: float  # the largest finite excess over I(x_i; x_U | x_C)
    single_exceeds: int  # cases where one outcome's KL is above I(x_i; x_U | x_C)
    partial: int  # cases where more than i stays masked
    overtakes: int  # of these: E KL(current || previous) is above the dependency that is left


@dataclass(frozen=True)
class CounterExample:
    """A joint p(x_i, x_R) of two bits where KL(previous || current) violates lemma and bound."""

    joint: tuple[tuple[float, ...], ...]
    forward: float
    reverse: float
    mutual: float
    entropy: float


@dataclass(frozen=True)
class TheoryResult:
    """The counts of all cases, of each kind of joint, and the counter-example."""

    seed: int
    total: CaseTally
    kinds: dict[str, CaseTally]
    counter_example: CounterExample

    @property
    def largest_violation(self) -> float:
        """The largest violation of the lemma or the bound; NaN if either is NaN."""
        return float(np.maximum(self.total.equality_violation, self.total.bound_violation))


def check(cases: int = 5000, seed: int = 0) -> TheoryResult:
    """Measure random joints of 3 to 5 positions over 2 to 4 tokens, with random roles."""
    if not 1 <= cases <= MOST:
        raise UnmaskError(f"cases must be from 1 to {MOST}, got {cases}")
    if seed < 0:
        raise UnmaskError(f"seed must be >= 0, got {seed}")
    rng = np.random.default_rng(seed)
    by_kind: dict[str, list[JointMeasures]] = {}
    for batch, start in enumerate(range(0, cases, BATCH)):
        kind = KINDS[batch % len(KINDS)]
        joint = random_joints(kind, min(BATCH, cases - start), rng)
        by_kind.setdefault(kind, []).append(measure(with_random_roles(joint, rng)))
    everything = [measures for batches in by_kind.values() for measures in batches]
    tallies = {kind: tally(batches) for kind, batches in by_kind.items()}
    return TheoryResult(seed, tally(everything), tallies, counter_example())


def measure(joint: Array) -> JointMeasures:
    """Measure joints p(x_i, x_C, x_R, x_rest) of shape [N, I, C, R, S]; a group may be empty."""
    before = joint.sum((3, 4))  # [N, I, C]     p(x_i, x_C)
    after = joint.sum(4)  # [N, I, C, R]  p(x_i, x_C, x_R)
    outcome = joint.sum((1, 4))  # [N, C, R]     p(x_C, x_R)
    context = joint.sum((1, 3, 4))  # [N, C]        p(x_C)
    previous = (before / _or_one(context)[:, None])[..., None]  # [N, I, C, 1]  p(x_i | x_C)
    current = after / _or_one(outcome)[:, None]  # [N, I, C, R]  p(x_i | x_C, x_R)
    forward, reverse = _kl(current, previous), _kl(previous, current)  # [N, C, R]
    entropy = _entropy(before) - _entropy(context)
    return JointMeasures(
        forward=_mean(forward, outcome, (1, 2)),
        reverse=_mean(reverse, outcome, (1, 2)),
        single=np.where(outcome > 0, forward, 0.0).max((1, 2)),
        gain=entropy + _entropy(outcome) - _entropy(after),
        mutual=entropy + _entropy(joint.sum(1)) - _entropy(joint),
        entropy=entropy,
        partial=np.full(len(joint), joint.shape[4] > 1),
    )


def _kl(p: Array, q: Array) -> Array:
    """KL(p || q) over axis 1, with 0 log 0 = 0; inf where q is 0 and p is not."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return _mean(np.log(p) - np.log(q), p, (1,))


def _entropy(p: Array) -> Array:
    """The entropy of each of N distributions with any further axes: [N]."""
    return -_mean(np.log(_or_one(p)), p, tuple(range(1, p.ndim)))


def _mean(value: Array, weight: Array, axes: tuple[int, ...]) -> Array:
    """The sum of weight * value; a value of weight 0 counts as 0, even if it is inf."""
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(weight > 0, weight * value, 0.0).sum(axes)
    return mean


def _or_one(p: Array) -> Array:
    """p with 1 in place of 0, to divide by."""
    return np.where(p > 0, p, 1.0)


def tally(batches: Sequence[JointMeasures]) -> CaseTally:
    """Count the cases of all batches and take the largest violations."""
    all_of = JointMeasures(*(np.concatenate(column) for column in zip(*batches, strict=True)))
    excess = all_of.reverse - all_of.mutual
    left = all_of.mutual - all_of.gain  # chain rule: I(x_i; x_rest | x_C, x_R)
    return CaseTally(
        cases=len(excess),
        equality_violation=float(np.abs(all_of.forward - all_of.gain).max()),
        bound_violation=float((all_of.forward - all_of.mutual).max(initial=0.0)),
        reverse_differs=int((np.abs(all_of.reverse - all_of.gain) > TOLERANCE).sum()),
        reverse_exceeds=int((excess > TOLERANCE).sum()),
        reverse_infinite=int(np.isinf(excess).sum()),
        worst_excess=float(excess[~np.isinf(excess)].max(initial=0.0)),
        single_exceeds=int((all_of.single - all_of.mutual > TOLERANCE).sum()),
        partial=int(all_of.partial.sum()),
        overtakes=int((all_of.partial & (all_of.forward - left > TOLERANCE)).sum()),
    )


def counter_example() -> CounterExample:
    """Two bits that agree with probability 0.98; R = U, so the gain is the mutual information."""
    measures = measure(np.array(NOISY_COPY)[None, :, None, :, None])
    names = ("forward", "reverse", "mutual", "entropy")
    return CounterExample(NOISY_COPY, *(float(getattr(measures, name)[0]) for name in names))


def random_joints(kind: str, num: int, rng: Rng) -> Array:
    """Joints with random weights on a support, mixed with a dense joint: [N, K, ..., K]."""
    shape = (int(rng.integers(2, 5)),) * int(rng.integers(3, 6))  # 2 to 4 tokens, 3 to 5 positions
    sequences = np.indices(shape).reshape(len(shape), -1)
    weights = _supports(sequences, rng)[kind] * rng.exponential(size=(num, sequences.shape[1]))
    inside = weights / weights.sum(-1, keepdims=True)
    noise = rng.choice(NOISE, size=(num, 1))
    dense = rng.dirichlet(np.ones(sequences.shape[1]), size=num)
    joint: Array = (1 - noise) * inside + noise * dense
    return joint.reshape(num, *shape)


def with_random_roles(joint: Array, rng: Rng) -> Array:
    """Assign roles to positions: target, known, revealed, rest; [N, K, ...] -> [N, I, C, R, S]."""
    alphabet, length = joint.shape[1], joint.ndim - 1
    num_known = int(rng.integers(0, length - 1))
    num_revealed = int(rng.integers(1, length - num_known))
    num_rest = length - 1 - num_known - num_revealed
    roles = [alphabet**size for size in (1, num_known, num_revealed, num_rest)]
    dealt: Array = joint.transpose(0, *(1 + rng.permutation(length)))
    return dealt.reshape(len(joint), *roles)


def _supports(sequences: NDArray[np.int64], rng: Rng) -> dict[str, Bools]:
    """The support of each kind of joint: True for the allowed columns of [n, K^n]: [K^n]."""
    tied = sequences[: rng.integers(3, len(sequences) + 1)]
    drawn = rng.random((sequences.shape[1],))
    return {
        "dense": drawn >= 0,
        "sparse": (drawn < 0.3) | (drawn == drawn.min()),  # never empty
        "copies": (tied[:-1] == tied[0]).all(0),
        "parity": tied.sum(0) % (sequences.max() + 1) == 0,
    }


def lines(result: TheoryResult) -> Iterator[str]:
    """The report as text: the counts, the counter-example, and an explanation."""
    yield f"{result.total.cases} random joints by enumeration, seed {result.seed}, in nats\n"
    yield f"{'':14}  |E D - gain|  E D - bound  E KL(previous || current)"
    yield f"{'kind':8}{'cases':>6}{'largest':>14}{'largest':>13}  above bound  infinite"
    for kind, row in [*result.kinds.items(), ("all", result.total)]:
        yield (
            f"{kind:8}{row.cases:6}{row.equality_violation:14.1e}{row.bound_violation:13.1e}"
            f"{row.reverse_exceeds / row.cases:13.1%}{row.reverse_infinite / row.cases:10.1%}"
        )
    text = SUMMARY.format(result=result, total=result.total, example=result.counter_example)
    yield from text.splitlines()


SUMMARY = """
Position i is masked. C is known, the step reveals R, and U are all masked positions except i.
  Lemma 1   E D  = I(x_i; x_R | x_C), the information gain,  for D = KL(current || previous)
  Bound     E D <= I(x_i; x_U | x_C), with equality when the step reveals all of U
  Largest violation of either: {result.largest_violation:.1e} (below 1e-9: rounding)
In {total.reverse_differs} of {total.cases} cases E KL(previous || current) differs from the gain.
It exceeds the bound by up to {total.worst_excess:.2f} where it is finite.

Counter-example for D = KL(previous || current), as in Algorithm 1: two bits that mostly agree,
p(0,0) = p(1,1) = 0.49, p(0,1) = p(1,0) = 0.01. Before: (0.5, 0.5). With x_R seen: (0.98, 0.02).
  E KL(current || previous) = 0.98 log 1.96 + 0.02 log 0.04 = {example.forward:.4f} = I(x_i; x_R)
  E KL(previous || current) = -log(2 sqrt(0.98 * 0.02))     = {example.reverse:.4f}
The second is larger than the mutual information and than H(x_i) = log 2 = {example.entropy:.4f}.
If the bits always agree (0.5, 0, 0, 0.5), the gain is log 2 and the second is infinite.

What the bound says: KL(current || previous) at i measures what i learned from the tokens just
revealed. On average over tokens drawn from the joint, that is at most what i shared with all of U.

What it does not say:
- It says nothing about what is left. D counts information already absorbed; it is not a lower
  bound on the dependency that remains, I(x_i; U_t | x_t). A copied bit: D = log 2, none is left.
  One of three bits of even parity, another revealed: D = 0, and log 2 is left. Here D was above
  what was left in {total.overtakes} of the {total.partial} cases where more than i stayed masked.
- It says nothing certain about one step. The expectation is over the joint; a decoder sees one
  outcome. In {total.single_exceeds} of {total.cases} cases one outcome had a KL above the bound.
- It does not cover KL(previous || current), the default of Algorithm 1 and of swd();
  swd(kl=cur_prev) uses the other direction.
- It does not cover a model whose predictions are not the conditionals of one joint, or a decoder
  that writes the likeliest tokens instead of drawing them from the joint.
- If U contains x_i itself, as the paper writes it, only E D <= H(x_i | x_C) remains.
So a large D may be a reason to wait. It does not prove a commitment wrong, and a small D does not
prove one safe.
"""
