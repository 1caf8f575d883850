"""The one loop: forward, decide, commit, until every row is filled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import torch

from unmask.decoding.canvas import canvas_of
from unmask.decoding.decide import Decide, by_rule
from unmask.decoding.request import Request, Settings, check_batch_size
from unmask.decoding.results import Step
from unmask.decoding.rows import Reducer, Rows
from unmask.errors import RequestError, shown
from unmask.kernels.reduce import reduce
from unmask.models.denoiser import Denoiser, check_denoiser


class Failure(NamedTuple):
    """Rows that left a batch because their decision raised."""

    keys: tuple[int, ...]
    error: BaseException


class Batch:
    """Rows that decode together: they enter and leave at any step, each as if it were alone.

    All rows share the forward passes; rows with equal settings share the decision too.

    Args:
        model: what predicts.
        keep_logits: whether steps carry the logits that they were decided by.
        reducer: makes the pass over the logits (default: `reduce`).
        decide: decides each step (default: by the rule).
    """

    def __init__(
        self,
        model: Denoiser,
        keep_logits: bool = False,
        reducer: Reducer = reduce,
        decide: Decide = by_rule,
    ) -> None:
        check_denoiser(model)
        self.model = model
        self.keep_logits = keep_logits
        self.reducer, self.decide = reducer, decide
        self.groups: dict[tuple[Settings, int | None, int], Rows] = {}  # the last is the lane
        self._next_key = 0

    def __len__(self) -> int:
        return sum(len(rows) for rows in self.groups.values())

    @property
    def lanes(self) -> set[int]:
        """The lanes that have rows."""
        return {lane for _, _, lane in self.groups}

    def admit(self, request: Request, apart: bool = False, lane: int = 0) -> int:
        """Add a request; returns the key that names it in its steps and its result.

        With `apart` its decision is made alone, so that no other row's failure can end it. Rows of
        one `lane` can take a step without the others.
        """
        if not isinstance(request, Request):
            raise RequestError(f"a request is made by prompt_request, got {shown(request)}")
        key, self._next_key = self._next_key, self._next_key + 1
        group = (request.settings, key if apart else None, lane)
        rows = self.groups.get(group)
        if rows is None:
            rows = Rows(self.model, request.settings, self.keep_logits, self.reducer, self.decide)
        rows.admit(request, key)
        self.groups[group] = rows  # only now: a request that cannot enter leaves nothing behind
        return key

    def drop(self, key: int) -> None:
        """Remove an unfinished request; its place is free at once."""
        for rows in self.groups.values():
            if key in rows.keys:
                rows.drop(key)
        self._forget_empty()

    @torch.no_grad()
    def step(self, failed: list[Failure] | None = None, lane: int | None = None) -> list[Step]:
        """One forward pass of all rows, or of one lane's, then one decision per group.

        If a decision raises, the error is raised here. With a list `failed`, it is added to the
        list instead, its rows leave, and the others continue; this holds for every exception, also
        for SystemExit or KeyboardInterrupt from a part of a rule.
        """
        groups = {key: rows for key, rows in self.groups.items() if lane in (None, key[2])}
        if not groups:
            return []
        hidden = self.model.trunk(canvas_of(list(groups.values())))
        steps, first = [], 0
        for group, rows in groups.items():
            keys = tuple(rows.keys)
            try:
                steps.append(rows.step(hidden, first))
            except BaseException as error:
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

    At most `batch_size` rows decode at once; the next request takes a finished row's place.
    Requests are numbered in their order, and a step names its rows by these `keys`. The other
    arguments are those of `Batch`.
    """
    check_batch_size(batch_size)
    batch, waiting = Batch(model, keep_logits, reducer), iter(requests)
    while True:
        for request in islice(waiting, batch_size - len(batch)):
            batch.admit(request)
        if not len(batch):
            return
        yield from batch.step()
