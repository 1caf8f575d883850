"""A history of the likeliest tokens: their probabilities, and the mass of all the others.

With q before and p now, K the tokens that are kept and Q, P the masses of the rest, the computed
divergence is the KL of the distributions in which the rest is one token:

    D = sum_K q log(q / p) + Q log(Q / P)

It lies below the true KL(q || p) by Q KL(q' || p'), the divergence of the rests as distributions of
their own. A KL is at most the logarithm of the largest ratio; in the rest, q is at most the least
kept q and p is at least the least p. So

    0 <= KL(q || p) - D <= Q log(min(1, least kept q / Q) P / least p)

This bound is the `kl_error` that comes with every D; for KL(p || q) the two change places. The
Jensen-Shannon divergence lies below by that of the rests, at most log 2, times their mean mass,
(P + Q) / 2; the total variation by at most min(P, Q).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log

import torch
from torch import Tensor

from unmask.kernels.common import Stats, chunks, working_dtype
from unmask.kernels.reduce import reduce
from unmask.models.denoiser import ship
from unmask.rules.view import FIELDS, Divergence

_COLUMNS = ("tokens", "kept", "rest", "least")


@dataclass(frozen=True)
class Likeliest:
    """What is kept of M distributions; logarithms, float32 (float64 of float64)."""

    tokens: Tensor  # [M, k] int32
    kept: Tensor  # [M, k] of their probabilities, the largest first
    rest: Tensor  # [M]   of the mass of all others
    least: Tensor  # [M]   of the smallest probability among the others
    suppressed: tuple[int, ...]  # tokens at -inf in every forward; they have no mass

    @classmethod
    def of(cls, logits: Tensor, count: int, suppressed: tuple[int, ...]) -> Likeliest:
        """The `count` likeliest tokens of rows of logits [M, V]."""
        parts = [cls._of_chunk(logits[rows], count, suppressed) for rows in chunks(logits)]
        return parts[0].joined(parts[1:])

    @classmethod
    def _of_chunk(cls, logits: Tensor, count: int, suppressed: tuple[int, ...]) -> Likeliest:
        z = logits.to(working_dtype(logits))
        kept, tokens = z.topk(min(count, z.shape[-1]), -1)
        rest, _, least = _others(z, tokens, suppressed)
        total = torch.logaddexp(kept.logsumexp(-1), rest)
        return cls(tokens.int(), kept - total[:, None], rest - total, least - total, suppressed)

    def rows(self, which: Tensor) -> Likeliest:
        """Some of the rows, by their numbers."""
        which = ship(which, self.tokens.device)
        return replace(self, **{name: getattr(self, name)[which] for name in _COLUMNS})

    def joined(self, others: Sequence[Likeliest]) -> Likeliest:
        """These rows, then those of the others."""
        tokens, kept, rest, least = (
            torch.cat([getattr(part, name) for part in (self, *others)]) for name in _COLUMNS
        )
        return Likeliest(tokens, kept, rest, least, self.suppressed)

    def previous(self, slot: Tensor) -> SparsePrevious:
        """The past of N rows: that of row n is the kept row `slot[n]`; -1 if it has none."""
        return SparsePrevious(self, ship(slot, self.tokens.device))


@dataclass(frozen=True)
class SparsePrevious:
    """The last forward: row n of now is row `slot[n]` of what is kept, or none at -1."""

    kept: Likeliest
    slot: Tensor  # [N]

    def reduce(
        self, logits: Tensor, kl: frozenset[Divergence], uniform_start: bool, tokens: Tensor | None
    ) -> Stats:
        """The statistics of N rows, with divergences from below and how far they may be too low."""
        start = kl if uniform_start else frozenset()
        stats = reduce(logits, None, start, uniform_start, tokens=tokens)
        columns = self._compared(logits, kl)
        if uniform_start:
            known = self.slot >= 0
            for column in (FIELDS[kind] for kind in kl):
                columns[column] = torch.where(known, columns[column], getattr(stats, column))
        return replace(stats, **columns)

    def _compared(self, logits: Tensor, kl: frozenset[Divergence]) -> dict[str, Tensor]:
        """The divergences that are asked for and their `kl_error`; 0 without history: [N]."""
        parts = []
        for rows in chunks(logits):
            slot = self.slot[rows].long()
            before = self.kept.rows(slot.clamp_min(0))
            parts.append(_divergences(logits[rows], before, kl).masked_fill(slot < 0, 0.0))
        *divergences, error = torch.cat(parts, -1)
        columns = dict(zip((FIELDS[kind] for kind in sorted(kl)), divergences, strict=True))
        return {**columns, "kl_error": error}


def _divergences(logits: Tensor, before: Likeliest, kl: frozenset[Divergence]) -> Tensor:
    """The divergences of `kl` in the order of their names, and the largest error: [k + 1, n]."""
    z, tokens = logits.to(working_dtype(logits)), before.tokens.long()
    kept = z.gather(-1, tokens)
    rest, most, least = _others(z, tokens, before.suppressed)
    total = torch.logaddexp(kept.logsumexp(-1), rest).double()
    p = torch.cat([kept, rest[:, None]], -1).double() - total[:, None]
    q = torch.cat([before.kept, before.rest[:, None]], -1).double()
    errors = {
        "prev_cur": _rest_error(q[:, -1], before.kept[:, -1].double(), p[:, -1], least - total),
        "cur_prev": _rest_error(p[:, -1], most - total, q[:, -1], before.least.double()),
    }
    middle, rests = torch.logaddexp(p, q) - log(2), (p[:, -1].exp(), q[:, -1].exp())
    errors |= {"js": (rests[0] + rests[1]) / 2 * log(2), "tv": torch.minimum(*rests)}
    computed: dict[str, Callable[[], Tensor]] = {
        "prev_cur": lambda: _kl(q, p),
        "cur_prev": lambda: _kl(p, q),
        "js": lambda: (_kl(p, middle) + _kl(q, middle)) / 2,
        "tv": lambda: (p.exp() - q.exp()).abs().sum(-1) / 2,
    }
    asked = sorted(kl)
    largest = torch.stack([errors[kind] for kind in asked]).amax(0)
    return torch.stack([*(computed[kind]() for kind in asked), largest])


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
