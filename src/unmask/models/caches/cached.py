"""A loaded model with a cache: each forward computes only some positions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from unmask.errors import RequestError, UnknownName
from unmask.models.caches.policies import POLICIES, BlockCache, Memory, Policy
from unmask.models.denoiser import Canvas, Hidden, ModelSpec, ship
from unmask.models.pretrained import Pretrained
from unmask.models.transformer import block_causal


@dataclass
class KeyValueStore:
    """Keys and values of all layers, [B, H, L + 1, D] each; padding goes to the last position."""

    layers: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    where: Tensor | None = None  # [B, Q] the positions of the current forward
    length: int = 0

    def update(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write new keys and values at their positions; returns those of all positions."""
        assert self.where is not None
        if layer not in self.layers:
            rows, heads, _, size = keys.shape
            empty = keys.new_zeros(rows, heads, self.length + 1, size)
            self.layers[layer] = (empty, empty.clone())
        place = self.where[:, None, :, None].expand(keys.shape)
        for kept, new in zip(self.layers[layer], (keys, values), strict=True):
            kept.scatter_(2, place, new)
        k, v = self.layers[layer]
        return k[:, :, :-1], v[:, :, :-1]

    def take(self, rows: Tensor, known: Tensor, length: int) -> None:
        """Reorder the rows for canvases of this length; rows that are not `known` become zero."""
        for layer, pair in self.layers.items():
            grown = (_resized(kept[:, :, :-1], length + 1, 2)[rows] for kept in pair)
            k, v = (torch.where(known[:, None, None, None], kept, 0.0) for kept in grown)
            self.layers[layer] = (k, v)
        self.length = length


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
        """Compute some positions of each row; rows with fewer positions are padded."""
        length = canvas.tokens.shape[-1]
        queries = int(computed.sum(-1).max())
        order = computed.to(torch.uint8).sort(descending=True, stable=True).indices[:, :queries]
        valid = computed.gather(-1, order)  # [B, Q]
        self._store.where = ship(order.masked_fill(~valid, length), self.device)
        tokens = ship(canvas.tokens.gather(-1, order), self.device)
        assert self._memory is not None
        visible = (self._memory.computed | computed) & real  # [B, K]
        mask = visible[:, None, None]
        if self.spec.block is not None:
            place = torch.arange(length).expand(visible.shape)
            offset = self.model.offset(canvas)[:, None]
            mask = mask & block_causal(order + offset, place + offset, self.spec.block)[:, None]
        places, visible = ship(order, self.device), ship(mask, self.device)
        states = self.model.module(tokens, places, visible, self._store)
        if self._hidden is None:
            self._hidden = states.new_zeros(*canvas.tokens.shape, states.shape[-1])
        hidden = self._hidden.clone()  # callers may still hold the last forward's states
        rows, columns = valid.nonzero(as_tuple=True)
        places = ship(order[rows, columns], hidden.device)
        rows, columns = ship(rows, hidden.device), ship(columns, hidden.device)
        hidden[rows, places] = states[rows, columns]
        self._hidden = hidden

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
            self._store.length = shape[-1]
        elif canvas.keys != self._keys or memory.tokens.shape != shape:
            at = {key: row for row, key in enumerate(self._keys)}
            rows = torch.tensor([at.get(key, 0) for key in canvas.keys])
            known = torch.tensor([key in at for key in canvas.keys])
            there = ship(rows, self.device)
            self._store.take(there, ship(known, self.device), shape[-1])
            memory = _taken(memory, rows, known, shape)
            if self._hidden is not None:
                self._hidden = _resized(self._hidden, shape[-1], 1)[there]
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
            columns.append(torch.where(known[:, None], _resized(kept, shape[-1], 1)[rows], new))
    return Memory(*columns)


def _resized(kept: Tensor, length: int, axis: int) -> Tensor:
    """Cut an axis, or pad its end with zeros."""
    have = kept.shape[axis]
    if have >= length:
        return kept.narrow(axis, 0, length)
    padding = [0, 0] * (kept.ndim - 1 - axis) + [0, length - have]
    return pad(kept, padding)
