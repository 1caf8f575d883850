"""The one loop: forward, decide, commit, until every row is filled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from unmask.decoding.request import Eos, Request, Settings, infill_request, prompt_request
from unmask.decoding.results import Result, Step
from unmask.decoding.rows import Reducer, Rows
from unmask.decoding.sampling import Sampling
from unmask.errors import ModelError, RequestError
from unmask.kernels.reduce import reduce
from unmask.models.denoiser import Canvas, Denoiser, ModelSpec
from unmask.rules.recipes import RECIPES
from unmask.rules.rule import Rule

Ids = Sequence[int] | Tensor


class Failure(NamedTuple):
    """Rows that left a batch because their decision raised."""

    keys: tuple[int, ...]
    error: Exception


class Batch:
    """Rows that decode together: they enter and leave at any step, each as if it were alone.

    All rows share the forward passes; rows with equal settings share the decision too. With
    `keep_logits` every step comes with the logits that it was decided by. `reducer` makes the pass
    over the logits in the place of `reduce`.
    """

    def __init__(
        self, model: Denoiser, keep_logits: bool = False, reducer: Reducer = reduce
    ) -> None:
        self.model = model
        self.keep_logits = keep_logits
        self.reducer = reducer
        self.groups: dict[tuple[Settings, int | None], Rows] = {}
        self._next_key = 0

    def __len__(self) -> int:
        return sum(len(rows) for rows in self.groups.values())

    def admit(self, request: Request, apart: bool = False) -> int:
        """Take a request in; returns the key by which its steps and result are known.

        `apart`, its decision is shared with nobody, so that only its own can fail it.
        """
        key, self._next_key = self._next_key, self._next_key + 1
        group = (request.settings, key if apart else None)
        if group not in self.groups:
            self.groups[group] = Rows(self.model, request.settings, self.keep_logits, self.reducer)
        self.groups[group].admit(request, key)
        return key

    def drop(self, key: int) -> None:
        """Let an unfinished request go; its row is free at once."""
        for rows in self.groups.values():
            if key in rows.keys:
                rows.drop(key)
        self._forget_empty()

    @torch.no_grad()
    def step(self, failed: list[Failure] | None = None) -> list[Step]:
        """One forward pass of all rows, then one decision per group of equal settings.

        A decision that raises does so here; or, given a list for such, its rows leave and the
        others go on.
        """
        groups = dict(self.groups)
        if not groups:
            return []
        hidden = self.model.trunk(_canvas(list(groups.values())))
        steps, first = [], 0
        for group, rows in groups.items():
            keys = tuple(rows.keys)
            try:
                steps.append(rows.step(hidden, first))
            except Exception as error:
                if failed is None:
                    raise
                failed.append(Failure(keys, error))
                del self.groups[group]
            first += len(keys)
        self._forget_empty()
        return steps

    def _forget_empty(self) -> None:
        self.groups = {key: rows for key, rows in self.groups.items() if len(rows)}


def decode_steps(
    model: Denoiser,
    requests: Iterable[Request],
    batch_size: int = 1,
    keep_logits: bool = False,
    reducer: Reducer = reduce,
) -> Iterator[Step]:
    """Fill every request by Algorithm 1, yielding every step.

    At most `batch_size` rows decode at once; a finished row's place is taken at the next step.
    Requests are numbered in their order: a step names its rows by those `keys`. `keep_logits` lets
    a step carry the logits it was decided by; `reducer` stands in for `reduce`.
    """
    if batch_size < 1:
        raise RequestError(f"batch_size must be >= 1, got {batch_size}")
    batch, waiting = Batch(model, keep_logits, reducer), iter(requests)
    while True:
        for request in islice(waiting, batch_size - len(batch)):
            batch.admit(request)
        if not len(batch):
            return
        yield from batch.step()


def decode(
    model: Denoiser,
    prompt: Ids,
    rule: Rule | str = "confidence | swd(5) | eb(0.1)",
    *,
    length: int = 256,
    block: int | None = None,
    eos: Eos = "keep",
    sampling: Sampling | None = None,
    steps: int | None = None,
    history: int | None = None,
    seed: int = 0,
) -> Result:
    """Continue one prompt (token ids) by `length` tokens.

    Args:
        model: what predicts; see `unmask.models`.
        prompt: token ids without masks; `infill` takes a canvas with masks anywhere.
        rule: a Rule, or its notation.
        length: how many tokens to write.
        block: positions per block, left to right; None decodes the full window at once, or in the
            block of the model, or else of the recipe whose name `rule` is.
        eos: keep, suppress, last, stop, block or fill; see `Settings`.
        sampling: temperature, top-p and top-k; greedy by default.
        steps: finish within this many forwards.
        history: keep so many tokens of the last forward's distributions, not all; see `Settings`.
        seed: of every random choice in this row.
    """
    spec = _as_denoiser(model).spec
    settings = _settings(spec, rule, block, eos, sampling, steps, history, length)
    return _drain(model, [prompt_request(spec, prompt, length, settings, seed)], 1)[0]


def infill(
    model: Denoiser,
    canvas: Ids,
    rule: Rule | str = "confidence | swd(5) | eb(0.1)",
    *,
    block: int | None = None,
    eos: Eos = "keep",
    sampling: Sampling | None = None,
    steps: int | None = None,
    history: int | None = None,
    seed: int = 0,
) -> Result:
    """Fill the masks of a canvas, wherever they stand; the knobs are those of `decode`."""
    spec = _as_denoiser(model).spec
    settings = _settings(spec, rule, block, eos, sampling, steps, history, 0)
    return _drain(model, [infill_request(spec, canvas, settings, seed)], 1)[0]


def decode_many(
    model: Denoiser,
    prompts: Sequence[Ids],
    rule: Rule | str = "confidence | swd(5) | eb(0.1)",
    *,
    length: int = 256,
    block: int | None = None,
    eos: Eos = "keep",
    sampling: Sampling | None = None,
    steps: int | None = None,
    history: int | None = None,
    seed: int = 0,
    batch_size: int = 8,
) -> list[Result]:
    """Continue many prompts of any lengths, up to `batch_size` at once; results in their order.

    Every row is decoded as if alone: the same tokens and the same NFE. A finished row leaves the
    batch and the next prompt takes its place; the longest go first, so that neighbours are alike
    and little is padded. Prompt i uses the seed `seed + i`.
    """
    spec = _as_denoiser(model).spec
    settings = _settings(spec, rule, block, eos, sampling, steps, history, length)
    requests = [
        prompt_request(spec, prompt, length, settings, seed + i) for i, prompt in enumerate(prompts)
    ]
    return _drain(model, requests, batch_size)


def _settings(
    spec: ModelSpec,
    rule: Rule | str,
    block: int | None,
    eos: Eos,
    sampling: Sampling | None,
    steps: int | None,
    history: int | None,
    length: int,
) -> Settings:
    if isinstance(rule, str):
        named = RECIPES.get(rule.strip())
        habit = 0 if named is None or spec.block is not None else named.block or 0
        if block is None and 0 < habit < length:
            block = habit
        rule = Rule.parse(rule)
    drawn = Sampling() if sampling is None else sampling
    return Settings(rule, block, eos, drawn, steps, history=history)


def _as_denoiser(model: Denoiser) -> Denoiser:
    """The model, if it is one: the pair that `load` gives is not."""
    if not hasattr(model, "trunk") or not hasattr(model, "spec"):
        raise ModelError(
            f"{type(model).__name__} is no denoiser; write model, tokenizer = unmask.load(...), or "
            "make it one with unmask.wrap"
        )
    return model


def _drain(model: Denoiser, requests: list[Request], batch_size: int) -> list[Result]:
    order = longest_first([len(request.canvas) for request in requests])
    finished = {
        order[result.key]: result
        for step in decode_steps(model, [requests[number] for number in order], batch_size)
        for result in step.finished
    }
    return [replace(finished[number], key=number) for number in range(len(requests))]


def longest_first(lengths: Sequence[int]) -> list[int]:
    """The numbers of requests of these lengths, the longest first."""
    return sorted(range(len(lengths)), key=lambda number: -lengths[number])


def _canvas(groups: list[Rows]) -> Canvas:
    """The canvases of all groups as one batch, padded on the right."""
    states = [rows.state for rows in groups]
    width = max(state.tokens.shape[-1] for state in states)
    return Canvas(
        tokens=torch.cat([pad(s.tokens, (0, width - s.tokens.shape[-1])) for s in states]),
        lengths=torch.cat([s.length for s in states]),
        masked=torch.cat([pad(s.masked, (0, width - s.masked.shape[-1])) for s in states]),
        given=torch.cat([pad(s.given, (0, width - s.given.shape[-1]), value=True) for s in states]),
        start=torch.cat([s.start for s in states]),
        stop=torch.cat([s.stop for s in states]),
        keys=tuple(identity for rows in groups for identity in rows.identities),
    )
