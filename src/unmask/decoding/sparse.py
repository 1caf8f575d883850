"""A history of the likeliest tokens: their probabilities, and the mass of all the others.

With q before and p now, K the tokens that are kept and Q, P the masses of the rest, what is
computed is the KL of the distributions in which the rest is one token:

    D = sum_K q log(q / p) + Q log(Q / P)

It lies below the true KL(q || p) by Q KL(q' || p'), the divergence of the rests as distributions of
their own. Of the rest, no q is larger than the least that is kept and no p smaller than the least
there is, and a KL is at most the logarithm of the largest ratio. So

    0 <= KL(q || p) - D <= Q log(min(1, least kept q / Q) P / least p)

which is the `error` that comes with every D; for KL(p || q) the two change places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from unmask.kernels.common import chunks, working_dtype
from unmask.rules.view import KL


@dataclass(frozen=True)
class Likeliest:
    """What is kept of M distributions; logarithms, float32 (float64 of float64)."""

    tokens: Tensor  # [M, k] int32
    kept: Tensor  # [M, k] of their probabilities, the largest first
    rest: Tensor  # [M]   of the mass of all others
    least: Tensor  # [M]   of the smallest probability among the others

    @classmethod
    def of(cls, logits: Tensor, count: int, suppressed: Sequence[int]) -> Likeliest:
        """Of rows of logits [M, V]; tokens that never have any mass count for nothing."""
        parts = [cls._of_chunk(logits[rows], count, suppressed) for rows in chunks(logits)]
        return cls.joined(parts)

    @classmethod
    def _of_chunk(cls, logits: Tensor, count: int, suppressed: Sequence[int]) -> Likeliest:
        z = logits.to(working_dtype(logits))
        kept, tokens = z.topk(min(count, z.shape[-1]), -1)
        rest, _, least = _others(z, tokens, suppressed)
        total = torch.logaddexp(kept.logsumexp(-1), rest)
        return cls(tokens.int(), kept - total[:, None], rest - total, least - total)

    @classmethod
    def joined(cls, parts: Sequence[Likeliest]) -> Likeliest:
        """All rows, in order."""
        return cls(*(torch.cat([getattr(p, f.name) for p in parts]) for f in fields(cls)))

    def rows(self, which: Tensor) -> Likeliest:
        """Some of the rows."""
        return Likeliest(*(getattr(self, field.name)[which] for field in fields(self)))


@dataclass(frozen=True)
class SparsePrevious:
    """The last forward: row n of now is row `slot[n]` of what is kept, or none at -1."""

    kept: Likeliest
    slot: Tensor  # [N]
    suppressed: tuple[int, ...]  # tokens at -inf in every forward


@dataclass(frozen=True)
class Compared:
    """N rows against what is kept of them, float64: [N] each."""

    kl_prev_cur: Tensor
    kl_cur_prev: Tensor
    error: Tensor  # the true KL of the asked directions lies at most this much higher


def compare(logits: Tensor, previous: SparsePrevious, kl: frozenset[KL]) -> Compared:
    """Both divergences of every row; 0 where there is no history."""
    parts = []
    for rows in chunks(logits):
        slot = previous.slot[rows].long()
        before = previous.kept.rows(slot.clamp_min(0))
        found = _compared(logits[rows], before, previous.suppressed, kl)
        parts.append(found.masked_fill(slot < 0, 0.0))
    return Compared(*torch.cat(parts, -1))


def _compared(
    logits: Tensor, before: Likeliest, suppressed: Sequence[int], kl: frozenset[KL]
) -> Tensor:
    """KL(before || now), KL(now || before), and the error of those that are asked for: [3, n]."""
    z, tokens = logits.to(working_dtype(logits)), before.tokens.long()
    kept = z.gather(-1, tokens)
    rest, most, least = _others(z, tokens, suppressed)
    total = torch.logaddexp(kept.logsumexp(-1), rest).double()
    p = torch.cat([kept, rest[:, None]], -1).double() - total[:, None]
    q = torch.cat([before.kept, before.rest[:, None]], -1).double()
    there, here = _kl(q, p), _kl(p, q)
    # how far the rest, as a distribution of its own, may have moved
    errors = {
        "prev_cur": _rest_error(q[:, -1], before.kept[:, -1].double(), p[:, -1], least - total),
        "cur_prev": _rest_error(p[:, -1], most - total, q[:, -1], before.least.double()),
    }
    asked = [errors[direction] for direction in sorted(kl)]
    error = torch.stack(asked).amax(0) if asked else torch.zeros_like(there)
    return torch.stack([there, here, error])


def _others(z: Tensor, tokens: Tensor, suppressed: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """Of all tokens but these: the log-sum of their weights, the largest and the smallest: [n]."""
    others = z.scatter(-1, tokens, -torch.inf)
    least = z.scatter(-1, tokens, torch.inf)
    if suppressed:
        least[:, list(suppressed)] = torch.inf
    return others.logsumexp(-1), others.amax(-1), least.amin(-1)


def _kl(log_a: Tensor, log_b: Tensor) -> Tensor:
    """KL(a || b) of rows of log-probabilities, where 0 log 0 = 0: [n, k] x 2 -> [n]."""
    a = log_a.exp()
    return torch.where(a > 0, a * (log_a - log_b), 0.0).sum(-1).clamp_min(0.0)


def _rest_error(mass: Tensor, largest: Tensor, other: Tensor, smallest: Tensor) -> Tensor:
    """mass * log(min(1, largest / mass) * other / smallest), all in logarithms: [n]."""
    ratio = torch.clamp_max(largest - mass, 0.0) + other - smallest
    ratio = torch.where(smallest > -torch.inf, ratio, torch.inf)
    return torch.where(mass > -torch.inf, mass.exp() * ratio, 0.0).clamp_min(0.0)
