"""Draws tokens, and computes the statistics that score them (temperature, credit, EOS last)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.decoding.state import State
from unmask.errors import RequestError, shown
from unmask.kernels.reduce import Stats, Transform, chunks, reduce, working_dtype
from unmask.models.denoiser import ship


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn: greedy at temperature 0, else Gumbel-max in float64.

    Tokens are drawn from the tempered, filtered logits. Scores read the untempered distribution:
    the confidence is the plain probability of the drawn token (LLaDA). With `tempered` scores read
    the tempered, filtered distribution (Dream).
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0  # 0: all tokens
    tempered: bool = False

    def __post_init__(self) -> None:
        for name, kind in (("temperature", int | float), ("top_p", int | float), ("top_k", int)):
            if not isinstance(getattr(self, name), kind):
                raise RequestError(f"{name} must be a number, got {shown(getattr(self, name))}")
        if self.temperature != 0 and not 1e-4 <= self.temperature < float("inf"):
            raise RequestError(
                f"temperature must be 0 (greedy), or >= 0.0001 and finite, got {self.temperature}"
            )
        if not 0 < self.top_p <= 1:
            raise RequestError(f"top_p must be in (0, 1], got {self.top_p}")
        if self.top_k < 0:
            raise RequestError(f"top_k must be >= 0 (0 keeps all tokens), got {self.top_k}")
        filtered = self.top_p < 1 or self.top_k > 0
        if filtered and not self.temperature and not self.tempered:
            raise RequestError(
                "top_p and top_k change nothing at temperature 0; give a temperature, or tempered "
                "to score what they leave"
            )

    @property
    def draws(self) -> bool:
        """Whether tokens are random."""
        return self.temperature > 0

    def temper(self, logits: Tensor) -> Tensor:
        """Logits over T, and -inf outside the top-p and top-k: [n, V] -> [n, V]."""
        z = logits / self.temperature if self.temperature else logits
        if self.top_p < 1:
            z = _keep_top_p(z, self.top_p)
        if self.top_k:
            kth = z.topk(min(self.top_k, z.shape[-1]), dim=-1).values[:, -1:]
            z = z.masked_fill(z < kth, -torch.inf)
        return z


def scored(
    logits: Tensor,
    known: Stats | None,
    sampling: Sampling,
    boost: Transform | None,
    last: Sequence[int],
    tokens: Tensor | None,
) -> Stats:
    """Token, confidence, margin and entropy as the score sees them: N cells.

    Args:
        logits: [N, V].
        known: the statistics of the boosted logits, if they are known; returned where nothing
            changes them.
        sampling: how tokens are drawn.
        boost: changes the logits before a token is drawn (credit, a language).
        last: tokens that are ranked last (EOS); the others are scored without them.
        tokens: the drawn tokens, [N]; None takes the likeliest ones.
    """
    transform = boost
    if sampling.tempered:
        transform = then(transform, lambda z, first: sampling.temper(z))
    if last:
        if tokens is None:
            same = known is not None and transform is boost
            tokens = known.token if same and known else reduce(logits, transform=transform).token
        ends = torch.tensor(last, device=logits.device)
        transform = then(transform, lambda z, first: _without(z, ends))
    if transform is boost and tokens is None and known is not None:
        return known
    return reduce(logits, transform=transform, tokens=tokens)


def likeliest(
    logits: Tensor, best: Tensor, boost: Transform | None, count: int
) -> tuple[Tensor, Tensor]:
    """The `count` likeliest tokens and their probabilities, on the host: [N, k] each.

    `best` is the probability of the likeliest one, [N]; all are those of the changed logits.
    """
    tokens, depths = [], []
    for rows in chunks(logits):
        z = logits[rows].to(working_dtype(logits))
        z = boost(z, rows.start) if boost else z
        values, places = z.topk(min(count, z.shape[-1]), -1)
        tokens.append(places)
        depths.append((values - values[:, :1]).double())
    probabilities = best[:, None].double() * torch.cat(depths).exp()
    ids, p = torch.stack([torch.cat(tokens).double(), probabilities]).cpu()  # waits once
    return ids.long(), p


def adding(tokens: Tensor, bonus: Tensor, device: torch.device) -> Transform:
    """Adds a bonus to the logits of some tokens, -1 for none: [N, K] each, on the host."""
    tokens, bonus = ship(tokens.clamp_min(0), device), ship(bonus, device)

    def add(z: Tensor, first: int) -> Tensor:
        rows = slice(first, first + len(z))
        return z.scatter_add(-1, tokens[rows], bonus[rows].to(z.dtype))

    return add


def uniform_draws(
    state: State, candidates: Tensor, generators: Sequence[torch.Generator]
) -> Tensor:
    """One float32 random number per candidate, row by row in order: [B, W]."""
    width = int((state.stop - state.start).max())
    draws = torch.zeros((len(state), width), dtype=torch.float64)
    rows = zip(candidates.cpu(), state.start.tolist(), generators, strict=True)
    for row, (mine, start, generator) in enumerate(rows):
        places = mine.nonzero()[:, 0] - start
        draws[row, places] = torch.rand(len(places), generator=generator).double()
    return draws


def draw(
    logits: Tensor,
    transform: Transform | None,
    sampling: Sampling,
    generators: Sequence[torch.Generator],
) -> Tensor:
    """One random token per cell, each from the generator of its row: [N]."""
    if not generators:  # no cell: a growing canvas first measures its end
        return torch.zeros(0, dtype=torch.int64, device=logits.device)
    drawn = []
    for rows in chunks(logits):
        z = logits[rows].to(working_dtype(logits))
        z = sampling.temper(transform(z, rows.start) if transform else z)
        noise = [
            torch.rand(z.shape[-1], dtype=torch.float64, generator=generator)
            for generator in generators[rows]
        ]
        drawn.append(gumbel_max(z, ship(torch.stack(noise), z.device)))
    return torch.cat(drawn)


def _without(z: Tensor, ends: Tensor) -> Tensor:
    """Logits without the end tokens; as they are where nothing else is allowed: [n, V]."""
    others = z.index_fill(-1, ends, -torch.inf)
    return torch.where((others > -torch.inf).any(-1, keepdim=True), others, z)


def then(first: Transform | None, second: Transform) -> Transform:
    """Two changes of the logits, one after the other."""
    return second if first is None else lambda z, row: second(first(z, row), row)


def gumbel_max(tempered: Tensor, uniform: Tensor) -> Tensor:
    """A draw from softmax(tempered), from uniform noise in [0, 1): [n, V] x 2 -> [n].

    The same token as argmax exp(z) / (-log u)^T of LLaDA's code, with z = T * tempered.
    """
    noise = -(-uniform.double().log()).log()
    return (tempered.double() + noise).argmax(-1)


def _keep_top_p(z: Tensor, top_p: float) -> Tensor:
    """Keep the likeliest tokens, up to and including the one that takes their sum past top_p."""
    ordered, order = z.sort(descending=True, stable=True)
    p = ordered.softmax(-1)
    beyond = p.cumsum(-1) - p > top_p  # the token that crosses top_p stays
    return z.masked_fill(torch.zeros_like(beyond).scatter(-1, order, beyond), -torch.inf)
