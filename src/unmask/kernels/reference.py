"""The statistics in plain PyTorch: the fallback, and the reference for the other kernels."""

from __future__ import annotations

from dataclasses import replace
from math import log

import torch
from torch import Tensor

from unmask.kernels.common import NO_HISTORY, UNIFORM, ReduceInput, Stats, chunks, working_dtype
from unmask.rules.view import FIELDS, Divergence

_PIECE = 1024  # torch splits the long sum of a single row over threads, but never one this short


def prepare() -> None:
    """Do nothing: there is nothing to load and nothing to check."""


def serves(rows: ReduceInput) -> bool:
    """Any floating dtype on any device."""
    return rows.now.is_floating_point()


def reduce_rows(rows: ReduceInput) -> Stats:
    """Statistics of N rows, chunk by chunk, in four buffers of the size of a chunk."""
    pieces: list[list[Tensor]] = []
    buffers: list[Tensor] = []
    for part in chunks(rows.now):
        buffers = buffers or _buffers(rows.now[part], 4)
        mine = replace(
            rows,
            now=rows.now[part],
            slot=None if rows.slot is None else rows.slot[part],
            tokens=None if rows.tokens is None else rows.tokens[part],
        )
        pieces.append(_reduce_chunk(mine, [buffer[: len(mine.now)] for buffer in buffers]))
    columns = [torch.cat(column) for column in zip(*pieces, strict=True)]
    names = [FIELDS[kind] for kind in _asked(rows.kl)]
    return Stats(*columns[:4], **dict(zip(names, columns[4:], strict=True)))


def _asked(kl: frozenset[Divergence]) -> list[Divergence]:
    """The divergences in the order in which they are computed."""
    return [kind for kind in FIELDS if kind in kl]


def row_sum(terms: Tensor) -> Tensor:
    """The sum of each row without its NaN, with the same bits alone and among others: [n].

    The sums of pieces are never split over threads, however many rows there are.
    """
    if terms.shape[-1] <= _PIECE:
        return terms.nansum(-1)
    whole, tail = _pieces(terms)
    return whole.nansum(-1).sum(-1) + tail.nansum(-1)


class _Softmax:
    """A chunk of softmax distributions: weights p, and depth = log p - log max p, into buffers.

    torch's softmax sums in float32 from end to end, which costs a digit over 126,464 tokens: the
    weights are divided by their own sum. A row with NaN, +inf or no finite logit is all NaN.
    """

    def __init__(self, z: Tensor, depth: Tensor, p: Tensor) -> None:
        self.top = _argmax(z)  # [n], the lowest id on ties
        self.p = torch.softmax(z, -1, out=p)  # [n, V]
        self.total = row_sum(self.p).double()  # [n], nearly 1
        self.depth = torch.sub(z, z.gather(-1, self.top[:, None]), out=depth)  # [n, V], <= 0
        self.best = self.probability(self.top)  # [n]

    def probability(self, token: Tensor) -> Tensor:
        """p(token): [n]."""
        return self.p.gather(-1, token[:, None])[:, 0].double() / self.total

    def margin(self) -> Tensor:
        """p(first) - p(second): [n]."""
        second = self.depth.scatter_(-1, self.top[:, None], -torch.inf).amax(-1)
        self.depth.scatter_(-1, self.top[:, None], 0.0)
        return self.best * -second.double().expm1()

    def entropy(self, buffer: Tensor) -> Tensor:
        """H = -log(max p) - sum(p * depth), in nats: [n]."""
        mean_depth = self.mean(torch.mul(self.p, self.depth, out=buffer))
        return (-self.best.log() - mean_depth).clamp_min(0.0)

    def mean(self, terms: Tensor) -> Tensor:
        """The mean of terms that are already multiplied by the weights: [n]."""
        return row_sum(terms).double() / self.total


def _reduce_chunk(rows: ReduceInput, buffers: list[Tensor]) -> list[Tensor]:
    """Token, confidence, margin, entropy and the divergences asked for: [n] each."""
    now = _Softmax(_floats(rows.now, buffers[0]), buffers[0], buffers[1])
    token = now.top if rows.tokens is None else rows.tokens
    out = [token, now.probability(token), now.margin(), now.entropy(buffers[2])]
    if rows.slot is None or not rows.kl:
        return out + [torch.zeros_like(out[1]) for _ in rows.kl]
    past = _Softmax(_past(rows, rows.slot, now, buffers[2]), buffers[2], buffers[3])
    unseen = rows.slot == NO_HISTORY
    bounded = _bounded(past, now, rows.kl)  # first: the others overwrite the weights
    every = [*_divergences(past, now, rows.kl), *bounded]
    return out + [d.masked_fill(unseen, 0.0) for d in every]


def _bounded(past: _Softmax, now: _Softmax, kl: frozenset[Divergence]) -> list[Tensor]:
    """Jensen-Shannon in [0, log 2], with 0 log 0 = 0; total variation in [0, 1]."""
    if not kl & {"js", "tv"}:
        return []
    p, q = (each.p / each.total[:, None].to(each.p.dtype) for each in (past, now))
    divergences = []
    if "js" in kl:
        middle = (p + q) / 2
        halves = [row_sum(side * (side / middle).log()).double() for side in (p, q)]
        divergences.append(((halves[0] + halves[1]) / 2).clamp(0.0, log(2)))
    if "tv" in kl:
        divergences.append((row_sum((p - q).abs()).double() / 2).clamp(0.0, 1.0))
    broken = (past.best + now.best).isnan()  # the sums leave NaN out
    return [d.masked_fill(broken, torch.nan) for d in divergences]


def _divergences(past: _Softmax, now: _Softmax, kl: frozenset[Divergence]) -> list[Tensor]:
    """KL(past || now), KL(now || past) >= 0; +inf where one forbids what the other allows.

    A gap is infinite where only one token of the two is suppressed and NaN where both are; 0
    times an infinite gap is NaN, and `row_sum` leaves NaN out: 0 log 0 = 0.
    """
    gap = past.depth.sub_(now.depth)  # [n, V]
    ratio = past.best.log() - now.best.log()
    divergences = []
    if "prev_cur" in kl:
        divergences.append((past.mean(past.p.mul_(gap)) + ratio).clamp_min(0.0))
    if "cur_prev" in kl:
        divergences.append((-now.mean(now.p.mul_(gap)) - ratio).clamp_min(0.0))
    return divergences


def _past(rows: ReduceInput, slot: Tensor, now: _Softmax, buffer: Tensor) -> Tensor:
    """The logits one forward ago, or uniform ones; rows without history hold any numbers."""
    if rows.past is not None and len(rows.past):
        slots = slot.clamp_min(0)
        if rows.past.dtype == buffer.dtype:
            torch.index_select(rows.past, 0, slots, out=buffer)
        else:
            buffer.copy_(rows.past.index_select(0, slots))
    if rows.uniform:
        flat = torch.where(now.depth == -torch.inf, now.depth, 0.0)
        torch.where((slot == UNIFORM)[:, None], flat, buffer, out=buffer)
    return buffer


def _floats(values: Tensor, buffer: Tensor) -> Tensor:
    """The numbers in the buffer's dtype; copied into the buffer only where the dtypes differ."""
    return values if values.dtype == buffer.dtype else buffer.copy_(values)


def _buffers(chunk: Tensor, count: int) -> list[Tensor]:
    return [
        torch.empty(chunk.shape, dtype=working_dtype(chunk), device=chunk.device)
        for _ in range(count)
    ]


def _argmax(z: Tensor) -> Tensor:
    """The lowest id of the largest logit; torch's argmax is ten times slower than its maximum."""
    if z.shape[-1] <= _PIECE:
        return z.argmax(-1)
    whole, tail = _pieces(z)
    largest = torch.cat([whole.amax(-1), tail.amax(-1, keepdim=True)], -1)  # [n, pieces]
    start = largest.argmax(-1, keepdim=True) * _PIECE  # [n, 1], the first on ties
    inside = (start + torch.arange(_PIECE, device=z.device)).clamp_max(z.shape[-1] - 1)
    return inside.gather(-1, z.gather(-1, inside).argmax(-1, keepdim=True))[:, 0]


def _pieces(values: Tensor) -> tuple[Tensor, Tensor]:
    """Rows in pieces of equal length, and the remainder: [n, k, PIECE], [n, 1...PIECE]."""
    whole = (values.shape[-1] - 1) // _PIECE * _PIECE
    return values[:, :whole].view(len(values), whole // _PIECE, _PIECE), values[:, whole:]
