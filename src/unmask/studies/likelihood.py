"""How likely a text is to a masked diffusion model, by LLaDA's Monte-Carlo estimator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import comb
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from unmask.decoding.loop import decode_steps
from unmask.decoding.request import Request, Settings, prompt_request
from unmask.decoding.sampling import Sampling
from unmask.errors import ModelError, RequestError
from unmask.models.denoiser import Canvas, Denoiser, ModelSpec
from unmask.models.fingerprint import sha_of

CELLS = 512  # logits of so many positions at once


class Pair(NamedTuple):
    """A target and what stands before it, as token ids."""

    prefix: Sequence[int]
    target: Sequence[int]


class _Row(NamedTuple):
    """One canvas of an estimate."""

    number: int  # of its pair
    tokens: Tensor  # [L] all visible
    given: int  # positions of the prefix
    hidden: Tensor  # [L] bool: to be masked, and then predicted
    weight: float


def log_likelihoods(
    model: Denoiser,
    pairs: Sequence[Pair],
    samples: int = 128,
    seed: int = 0,
    batch_size: int = 8,
) -> Iterator[float]:
    """Estimates of log p(target | prefix) in nats, in order, each as soon as it is there.

    Of a target of T tokens, n ~ U{1..T} are hidden at random, and
    T / n * sum over the hidden of log p(token | all that is visible) is averaged: in expectation
    the model's bound, and the log-likelihood itself where its predictions are the marginals of one
    distribution. The counts n of an estimate are spread evenly over 1..T, as LLaDA's are; each of
    them is uniform. Where there are no more than `samples` ways to hide, all are taken and the
    value is exact. A block-causal model is asked block by block, each with `samples`.

    A value depends on the pair, `samples` and `seed` alone, not on the order or the batch.

    Args:
        model: without a cache: every canvas is another one.
        pairs: prefixes and targets; a prefix may be empty unless the model predicts from the token
            before, a target with no token has likelihood 1.
        samples: canvases per target; LLaDA's `mc_num`.
        seed: of what is hidden.
        batch_size: canvases in one forward.
    """
    for name, number in (("samples", samples), ("batch_size", batch_size)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise RequestError(f"{name} must be a whole number >= 1, got {number!r}")
    for pair in pairs:
        _check(model.spec, pair)
    rows = (
        row for n, pair in enumerate(pairs) for row in _rows(model.spec, n, pair, samples, seed)
    )
    totals, done = [0.0] * len(pairs), 0
    while batch := list(islice(rows, batch_size)):
        for row, value in zip(batch, _values(model, batch), strict=True):
            totals[row.number] += row.weight * value
        yield from totals[done : batch[-1].number]  # all that begin behind this one are complete
        done = batch[-1].number
    yield from totals[done:]


def would_write(
    model: Denoiser, pairs: Sequence[Pair], settings: Settings, seed: int = 0, batch_size: int = 8
) -> list[bool]:
    """Whether decoding writes just the target behind its prefix, without sampling.

    LLaDA's own check has the rule `confidence | top(1)` over the full window.
    """
    requests: dict[int, Request] = {}
    for number, (prefix, target) in enumerate(pairs):
        if target:
            block = None if settings.block is None else min(settings.block, len(target))
            here = replace(settings, block=block, steps=None, sampling=Sampling())
            requests[number] = prompt_request(model.spec, prefix, len(target), here, seed)
    numbers, same = list(requests), [True] * len(pairs)
    for step in decode_steps(model, requests.values(), batch_size):
        for result in step.finished:
            number = numbers[result.key]
            same[number] = result.answer.tolist() == list(pairs[number].target)
    return same


def _check(spec: ModelSpec, pair: Pair) -> None:
    if spec.mask_id in (*pair.prefix, *pair.target):
        raise RequestError(f"the text holds the mask token of {spec.name}, id {spec.mask_id}")


def _rows(spec: ModelSpec, number: int, pair: Pair, samples: int, seed: int) -> Iterator[_Row]:
    """All canvases of a pair; nothing stands behind what is asked for."""
    prefix, target = list(pair.prefix), list(pair.target)
    tokens = torch.tensor([*prefix, *target], dtype=torch.int64)
    source = torch.Generator().manual_seed(int(sha_of([seed, prefix, target])[:15], 16))
    for start, stop in _windows(spec.block, len(prefix), len(tokens)):
        hidden, weights = hidings(stop - start, samples, source)
        for cells, weight in zip(hidden, weights.tolist(), strict=True):
            whole = torch.cat([torch.zeros(start, dtype=torch.bool), cells])
            yield _Row(number, tokens[:stop], len(prefix), whole, weight)


def _windows(block: int | None, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The target at once, or the parts of it in each block of the model."""
    while start < stop:
        end = stop if block is None else min(stop, (start // block + 1) * block)
        yield start, end
        start = end


def hidings(size: int, samples: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
    """What to hide of `size` tokens, [N, size] bool, and the weight of each, [N]."""
    if 2**size - 1 <= samples:  # all there are
        bits = torch.arange(1, 2**size)[:, None] >> torch.arange(size)
        hidden = (bits & 1).bool()
        ways = [1 / (n * comb(size, n)) for n in hidden.sum(-1).tolist()]
        return hidden, torch.tensor(ways, dtype=torch.float64)
    first = int(torch.randint(size, (), generator=source))
    counts = (first + torch.arange(samples) * size // samples) % size + 1  # [N]
    rank = torch.rand(samples, size, generator=source).argsort(-1).argsort(-1)
    return rank < counts[:, None], size / (counts.double() * samples)


@torch.no_grad()
def _values(model: Denoiser, batch: list[_Row]) -> list[float]:
    """The sum of log p over what each canvas hides."""
    tokens = pad_sequence([row.tokens for row in batch], batch_first=True)  # [B, L]
    masked = pad_sequence([row.hidden for row in batch], batch_first=True)
    lengths = torch.tensor([len(row.tokens) for row in batch])
    place = torch.arange(tokens.shape[-1])
    given = place < torch.tensor([row.given for row in batch])[:, None]
    canvas = Canvas(
        tokens=tokens.masked_fill(masked, model.spec.mask_id),
        lengths=lengths,
        masked=masked,
        given=given | (place >= lengths[:, None]),
        start=torch.tensor([int(row.hidden.nonzero()[0]) for row in batch]),
        stop=lengths,
        keys=tuple(range(len(batch))),
    )
    hidden, (rows, positions) = model.trunk(canvas), masked.nonzero(as_tuple=True)
    sums = torch.zeros(len(batch), dtype=torch.float64)
    for first in range(0, len(rows), CELLS):
        at, where = rows[first : first + CELLS], positions[first : first + CELLS]
        logits = model.head(hidden, at, where)
        logits = logits if logits.dtype == torch.float64 else logits.float()
        wanted = tokens[at, where].to(logits.device)
        found = logits.log_softmax(-1).gather(-1, wanted[:, None])[:, 0]
        sums.index_add_(0, at, found.cpu().double())
    if bool(sums.isnan().any()):
        raise ModelError(f"{model.spec.name}: the model gave NaN")
    values: list[float] = sums.tolist()
    return values
