"""LLaDA's Monte-Carlo estimate of the log-likelihood of a text."""

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

CELLS = 512  # positions whose logits are computed at once


class Continuation(NamedTuple):
    """A target and the prefix before it, as token ids."""

    prefix: Sequence[int]
    target: Sequence[int]


class _Row(NamedTuple):
    """One canvas of an estimate."""

    number: int  # index of its continuation
    tokens: Tensor  # [L] all visible
    given: int  # length of the prefix
    hidden: Tensor  # [L] bool: masked and predicted
    weight: float


def log_likelihoods(
    model: Denoiser,  # without a cache, because no two canvases are related
    texts: Sequence[Continuation],
    samples: int = 128,  # canvases per target; LLaDA's `mc_num`
    seed: int = 0,  # of the random masks
    batch_size: int = 8,  # canvases in one forward
) -> Iterator[float]:
    """Estimate log p(target | prefix) in nats; yields in order, each value as soon as it is known.

    Of a target of T tokens, n ~ U{1..T} random ones are masked. The estimate averages
    T / n * sum over the masked tokens of log p(token | visible tokens). Its expectation is the
    model's bound; it is the log-likelihood itself if the predictions are the marginals of one
    distribution. The counts n of one estimate are spread evenly over 1..T, as in LLaDA; each of
    them is uniform. If there are at most `samples` ways to mask, all are used and the value is
    exact. For a block-causal model each block is estimated separately, with `samples` canvases.

    A value depends on the text, `samples` and `seed` only, not on the order or the batch. A prefix
    may be empty unless the model predicts each token from the one before. A target without tokens
    has likelihood 1.
    """
    for name, number in (("samples", samples), ("batch_size", batch_size)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise RequestError(f"{name} must be a whole number >= 1, got {number!r}")
    spec = model.spec
    for text in texts:
        if spec.mask_id in (*text.prefix, *text.target):
            raise RequestError(f"the text holds the mask token of {spec.name}, id {spec.mask_id}")
    rows = (row for n, text in enumerate(texts) for row in _rows(spec, n, text, samples, seed))
    totals, done = [0.0] * len(texts), 0
    while batch := list(islice(rows, batch_size)):
        for row, value in zip(batch, _values(model, batch), strict=True):
            totals[row.number] += row.weight * value
        yield from totals[done : batch[-1].number]  # all texts before this one are complete
        done = batch[-1].number
    yield from totals[done:]


def would_write(
    model: Denoiser,
    texts: Sequence[Continuation],
    settings: Settings,
    seed: int = 0,
    batch_size: int = 8,
) -> list[bool]:
    """Whether decoding without sampling writes exactly the target after its prefix.

    LLaDA's own check uses the rule `confidence | top(1)` over the full window.
    """
    requests: dict[int, Request] = {}
    for number, (prefix, target) in enumerate(texts):
        if target:
            block = None if settings.block is None else min(settings.block, len(target))
            here = replace(settings, block=block, steps=None, sampling=Sampling())
            requests[number] = prompt_request(model.spec, prefix, len(target), here, seed)
    numbers, same = list(requests), [True] * len(texts)
    for step in decode_steps(model, requests.values(), batch_size):
        for result in step.finished:
            number = numbers[result.key]
            same[number] = result.answer.tolist() == list(texts[number].target)
    return same


def _rows(
    spec: ModelSpec, number: int, text: Continuation, samples: int, seed: int
) -> Iterator[_Row]:
    """All canvases of a text; each ends at the last predicted token."""
    prefix, target = list(text.prefix), list(text.target)
    tokens = torch.tensor([*prefix, *target], dtype=torch.int64)
    source = torch.Generator().manual_seed(int(sha_of([seed, prefix, target])[:15], 16))
    for start, stop in _windows(spec.block, len(prefix), len(tokens)):
        hidden, weights = hidings(stop - start, samples, source)
        for cells, weight in zip(hidden, weights.tolist(), strict=True):
            whole = torch.cat([torch.zeros(start, dtype=torch.bool), cells])
            yield _Row(number, tokens[:stop], len(prefix), whole, weight)


def _windows(block: int | None, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The whole target, or its part in each block of the model."""
    while start < stop:
        end = stop if block is None else min(stop, (start // block + 1) * block)
        yield start, end
        start = end


def hidings(size: int, samples: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
    """The tokens to mask in each canvas, [N, size] bool, and the canvas weights, [N]."""
    if 2**size - 1 <= samples:  # all subsets
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
    """The sum of log p over the masked tokens of each canvas."""
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
        logp = logits.log_softmax(-1).gather(-1, wanted[:, None])[:, 0]
        sums.index_add_(0, at, logp.cpu().double())
    if bool(sums.isnan().any()):
        raise ModelError(f"{model.spec.name}: the model returned NaN")
    values: list[float] = sums.tolist()
    return values
