"""One pass over the logits: token, confidence, margin, entropy and instability per row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.view import ABSENT, KL

CHUNK_ELEMENTS = 1 << 18  # float32 elements of a chunk: 1 MB stays in a cache (GPU: 256 MB)

_SPLIT, _PIECE = 32768, 1024  # where torch begins to split a sum; what it never splits

# Changes a chunk of float logits before it is scored: (logits [n, V], first row) -> [n, V].
Transform = Callable[[Tensor, int], Tensor]


@dataclass(frozen=True)
class Stats:
    """What is left of N rows of logits: [N] each, float64 (token: int64)."""

    token: Tensor
    confidence: Tensor
    margin: Tensor
    entropy: Tensor
    kl_prev_cur: Tensor = ABSENT
    kl_cur_prev: Tensor = ABSENT


@dataclass(frozen=True)
class Previous:
    """The logits of the last forward: row n of now is row `slot[n]` of `logits`, or none at -1."""

    logits: Tensor  # [M, V] in the model's dtype
    slot: Tensor  # [N]


def reduce(
    logits: Tensor,
    previous: Previous | None = None,
    kl: frozenset[KL] = frozenset(),
    uniform_start: bool = False,
    transform: Transform | None = None,
    tokens: Tensor | None = None,
) -> Stats:
    """Statistics of N rows of logits, in chunks of rows, float32 inside (float64 for float64).

    Suppressed tokens carry -inf and weigh nothing: 0 log 0 = 0. Ties go to the lowest token id.
    A row with NaN, +inf or no finite logit gets a NaN confidence, for the caller to name.

    Args:
        logits: [N, V], any floating dtype.
        previous: the logits one forward ago; rows without any get D = 0.
        kl: which directions of the instability to compute.
        uniform_start: rows without history are compared with the uniform distribution.
        transform: changes a chunk before it is scored (temperature, credit, EOS last); it
            returns a new tensor, and goes with no `kl`: the instability is of the raw logits.
        tokens: [N], the tokens to score instead of the likeliest ones (drawn tokens).
    """
    assert not (kl and transform), "the instability is of the model's own distribution"
    pieces = []
    for rows in chunks(logits):
        z = logits[rows].to(working_dtype(logits))  # [n, V], read only
        now = _Softmax(transform(z, rows.start) if transform else z)
        token = now.top if tokens is None else tokens[rows]
        out = [token, now.probability(token), now.margin(), now.entropy()]
        if kl:
            past = _past(z, previous, rows, uniform_start)
            for direction in ("prev_cur", "cur_prev"):
                if direction in kl:
                    pair = (past, now) if direction == "prev_cur" else (now, past)
                    out.append(_divergence(*pair))
        pieces.append(out)
    columns = [torch.cat(column) for column in zip(*pieces, strict=True)]
    token, confidence, margin, entropy = columns[0], *(c.double() for c in columns[1:4])
    found = iter(_only_where_seen(columns[4:], previous, uniform_start))
    return Stats(
        token,
        confidence,
        margin,
        entropy,
        next(found) if "prev_cur" in kl else ABSENT,
        next(found) if "cur_prev" in kl else ABSENT,
    )


def divergence(first: Tensor, second: Tensor) -> Tensor:
    """KL(softmax(first) || softmax(second)) of N pairs of rows, >= 0: [N, V] x 2 -> [N]."""
    dtype = working_dtype(first)
    pieces = [
        _divergence(_Softmax(first[rows].to(dtype)), _Softmax(second[rows].to(dtype)))
        for rows in chunks(first)
    ]
    return torch.cat(pieces).double()


def chunks(logits: Tensor, elements: int | None = None) -> Iterator[slice]:
    """Slices over the rows, few enough rows each that a float32 copy stays small."""
    count, vocabulary = logits.shape
    elements = elements or CHUNK_ELEMENTS
    size = max(1, (elements << 8 if logits.is_cuda else elements) // vocabulary)
    return (slice(lo, min(lo + size, count)) for lo in range(0, max(count, 1), size))


def working_dtype(logits: Tensor) -> torch.dtype:
    """float32, or float64 where the model itself speaks float64."""
    return torch.float64 if logits.dtype == torch.float64 else torch.float32


def row_sum(terms: Tensor) -> Tensor:
    """The sum of each row, with the same bits alone and among others: [n, V] -> [n].

    torch splits a long sum over threads when it is the only one; sums of pieces are never split.
    """
    if terms.shape[-1] < _SPLIT:
        return terms.sum(-1)
    whole = terms.shape[-1] // _PIECE * _PIECE
    pieces = terms[:, :whole].reshape(len(terms), -1, _PIECE)
    return pieces.sum(-1).sum(-1) + terms[:, whole:].sum(-1)


class _Softmax:
    """A chunk of softmax distributions, kept as exp(z - max z) and its sum."""

    def __init__(self, z: Tensor) -> None:
        self.top = z.argmax(-1)  # [n], the lowest id on ties
        self.depth = z - z.gather(-1, self.top[:, None])  # [n, V], <= 0
        self.weight = self.depth.exp()  # [n, V]
        self.total = row_sum(self.weight)  # [n]

    def probability(self, token: Tensor) -> Tensor:
        """p(token): [n]."""
        return self.weight.gather(-1, token[:, None])[:, 0] / self.total

    def margin(self) -> Tensor:
        """p(first) - p(second): [n]."""
        runner_up = self.weight.scatter(-1, self.top[:, None], 0.0).amax(-1)
        return (1.0 - runner_up) / self.total

    def entropy(self) -> Tensor:
        """H = log(total) - sum(p * depth), in nats: [n]."""
        mean_depth = row_sum(self.weight * self._finite_depth()) / self.total
        return (self.total.log() - mean_depth).clamp_min(0.0)

    def _finite_depth(self) -> Tensor:
        # exp() of anything lower is 0 in either dtype, and 0 times a finite number is 0
        return self.depth.clamp_min(-1e4)


def _divergence(first: _Softmax, second: _Softmax) -> Tensor:
    """KL(first || second) >= 0; +inf where second forbids what first allows: [n]."""
    gap = first.depth - second.depth  # [n, V], +inf where only second is suppressed
    terms = torch.where(first.weight > 0, first.weight * gap, 0.0)
    mean_gap = row_sum(terms) / first.total
    return (mean_gap + second.total.log() - first.total.log()).clamp_min(0.0)


def _past(z: Tensor, previous: Previous | None, rows: slice, uniform_start: bool) -> _Softmax:
    """The distributions one forward ago; without history the present, or the uniform one."""
    missing = torch.where(z == -torch.inf, z, 0.0) if uniform_start else z
    if previous is None or len(previous.logits) == 0:
        return _Softmax(missing)
    slot = previous.slot[rows]
    found = previous.logits[slot.clamp_min(0)].to(z.dtype)
    return _Softmax(torch.where((slot >= 0)[:, None], found, missing))


def _only_where_seen(
    columns: list[Tensor], previous: Previous | None, uniform_start: bool
) -> list[Tensor]:
    """In float64, and exactly 0 where there is nothing to compare with."""
    columns = [column.double() for column in columns]
    if uniform_start or previous is None:
        return columns if uniform_start else [torch.zeros_like(column) for column in columns]
    return [torch.where(previous.slot >= 0, column, 0.0) for column in columns]
