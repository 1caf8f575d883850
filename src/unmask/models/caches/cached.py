"""A loaded model with a cache: each forward computes only some positions."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from unmask.errors import RequestError, UnknownName
from unmask.models.caches.policies import POLICIES, BlockCache, Memory, Policy
from unmask.models.caches.store import KeyValueStore, resized
from unmask.models.denoiser import Canvas, Hidden, ModelSpec, ship
from unmask.models.pretrained import Pretrained
from unmask.models.products import least_rows
from unmask.models.transformer import block_causal


class Part(NamedTuple):
    """Rows that share a forward, and the shape of what it computes."""

    rows: Tensor  # [b] ascending
    length: int  # positions of each canvas
    queries: int  # positions of each row that are computed, with padding


def check_cache(spec: ModelSpec, policy: Policy) -> None:
    """Raise unless the cache fits the model's attention."""
    if isinstance(policy, BlockCache) != (spec.block is not None):
        kind = "block-causal" if spec.block else "full"
        fitting = "'block'" if spec.block else "'prefix', 'dual' or 'delayed'"
        raise RequestError(f"{spec.name} has {kind} attention; the caches for it are {fitting}")


class Cached:
    """A model whose forwards compute only the positions that its policy chooses.

    Other positions are not `fresh`: rules do not choose them, and they do not enter the history.
    An old distribution would look perfectly stable.
    """

    def __init__(self, model: Pretrained, policy: Policy | str) -> None:
        if not isinstance(model, Pretrained):
            raise RequestError(
                f"a cache wraps a model from unmask.load, got {type(model).__name__}; guidance "
                "goes around the cache: Guided(Cached(model, ...), scale)"
            )
        if isinstance(policy, str):
            if policy not in POLICIES:
                raise UnknownName("cache", policy, POLICIES)
            policy = POLICIES[policy]()
        check_cache(model.spec, policy)
        self.model, self.device = model, model.device
        self.spec = replace(model.spec, shadows=False)
        self.policy = policy
        self._keys: tuple[int, ...] = ()
        self._store = KeyValueStore()
        self._memory: Memory | None = None
        self._hidden: Tensor | None = None

    def trunk(self, canvas: Canvas) -> Hidden:
        memory = self._follow(canvas)
        real = torch.arange(canvas.tokens.shape[-1]) < canvas.lengths[:, None]
        reach = canvas.stop if self.spec.block is None else self.model.reach(canvas)
        computed = self.policy(replace(canvas, stop=reach), memory) & real
        asked = computed
        if self.model.arch.shift:  # token i is read from the output at i - 1
            read = computed & (canvas.masked | ~_first(canvas))
            if self.spec.block is not None:
                read = canvas.masked & _first(canvas)  # the others are read from computed outputs
            computed = computed | (pad(read, (0, 1))[:, 1:] & real)
            asked = pad(computed, (1, 0))[:, :-1]
            asked[:, 0] = computed[:, 0]
        self._forward(canvas, computed, real)
        self._remember(canvas, computed, memory)
        assert self._hidden is not None
        return Hidden(self._hidden, fresh=asked)

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        return self.model.head(hidden, rows, positions)

    def _forward(self, canvas: Canvas, computed: Tensor, real: Tensor) -> None:
        """Compute some positions of each row, in one forward or several."""
        assert self._memory is not None
        visible = (self._memory.computed | computed) & real  # [B, L]
        hidden = self._hidden
        if hidden is not None:
            hidden = hidden.clone()  # callers may still hold the last forward's states
        for part in self._parts(canvas, computed.sum(-1)):
            rows, places, states = self._compute(canvas, computed, visible, part)
            if hidden is None:
                hidden = states.new_zeros(*canvas.tokens.shape, states.shape[-1])
            hidden[ship(rows, hidden.device), ship(places, hidden.device)] = states
        self._hidden = hidden

    def _parts(self, canvas: Canvas, counts: Tensor) -> list[Part]:
        """All rows, or in an exact model those of equal shape, so that no row changes another's.

        There the number of computed positions is rounded up to a multiple of `least_rows`: with
        fewer queries, products and attention would be rounded in another way alone than in a batch.
        """
        if not self.model.exact:
            every = torch.arange(len(counts))
            return [Part(every, canvas.tokens.shape[-1], int(counts.max()))]
        lengths = canvas.lengths
        least = least_rows(self.model.dtype)
        queries = torch.minimum(-(-counts // least) * least, lengths)
        shapes = sorted({*zip(lengths.tolist(), queries.tolist(), strict=True)})
        return [
            Part(((lengths == length) & (queries == count)).nonzero()[:, 0], length, count)
            for length, count in shapes
            if count
        ]

    def _compute(
        self, canvas: Canvas, computed: Tensor, visible: Tensor, part: Part
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One forward: the rows and positions that it computes, [N] each, and their states [N, D].

        Rows with fewer positions than others are padded.
        """
        rows, length, queries = part
        computed, visible = computed[rows, :length], visible[rows, :length]  # [b, K]
        order = computed.to(torch.uint8).sort(descending=True, stable=True).indices[:, :queries]
        valid = computed.gather(-1, order)  # [b, Q]
        mask = visible[:, None, None]
        if self.spec.block is not None:
            place = torch.arange(length).expand(visible.shape)
            offset = self.model.offset(canvas)[rows, None]
            mask = mask & block_causal(order + offset, place + offset, self.spec.block)[:, None]
        where = order.masked_fill(~valid, canvas.tokens.shape[-1])
        self._store.open(ship(rows, self.device), ship(where, self.device), length)
        tokens = canvas.tokens[rows].gather(-1, order)
        tokens, places, mask = (ship(given, self.device) for given in (tokens, order, mask))
        states = self.model.module(tokens, places, mask, self._store)
        line, column = valid.nonzero(as_tuple=True)
        states = states[ship(line, states.device), ship(column, states.device)]
        return rows[line], order[line, column], states

    def _remember(self, canvas: Canvas, computed: Tensor, memory: Memory) -> None:
        memory.computed |= computed
        memory.tokens = torch.where(computed, canvas.tokens, memory.tokens)
        memory.start = canvas.start.clone()
        whole = (computed | ~memory.computed).all(-1)
        memory.age = torch.where(whole, 0, memory.age + 1)
        if self.spec.block is not None:  # all blocks before the active one are complete
            offset = self.model.offset(canvas)
            begun = (canvas.start + offset) // self.spec.block * self.spec.block - offset
            memory.final = begun.clamp_min(0)

    def _follow(self, canvas: Canvas) -> Memory:
        """Reorder the kept rows to match this forward; new rows start empty."""
        shape = canvas.tokens.shape
        memory = self._memory
        if memory is None:
            memory = _empty(shape)
            self._store.shape = shape
        elif canvas.keys != self._keys or memory.tokens.shape != shape:
            at = {key: row for row, key in enumerate(self._keys)}
            rows = torch.tensor([at.get(key, 0) for key in canvas.keys])
            known = torch.tensor([key in at for key in canvas.keys])
            there = ship(rows, self.device)
            self._store.take(there, ship(known, self.device), shape)
            memory = _taken(memory, rows, known, shape)
            if self._hidden is not None:
                self._hidden = resized(self._hidden, shape[-1], 1)[there]
        self._keys, self._memory = canvas.keys, memory
        return memory


def _first(canvas: Canvas) -> Tensor:
    """True at the first position of each row's window: [B, L]."""
    return torch.arange(canvas.tokens.shape[-1]) == canvas.start[:, None]


def _empty(shape: torch.Size) -> Memory:
    rows = torch.zeros(shape[0], dtype=torch.int64)
    cells = torch.zeros(shape, dtype=torch.int64)
    return Memory(cells.bool(), cells - 1, rows - 1, rows, rows.clone())


def _taken(memory: Memory, rows: Tensor, known: Tensor, shape: torch.Size) -> Memory:
    columns = []
    for kept, new in zip(vars(memory).values(), vars(_empty(shape)).values(), strict=True):
        if kept.ndim == 1:  # a number for each row
            columns.append(torch.where(known, kept[rows], new))
        else:
            columns.append(torch.where(known[:, None], resized(kept, shape[-1], 1)[rows], new))
    return Memory(*columns)
