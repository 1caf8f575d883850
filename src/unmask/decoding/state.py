"""The tensors of rows; they grow and shrink together as rows enter and leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from unmask.decoding.memory import MemoryStore
from unmask.rules.memory import PartMemory

Where = tuple[Tensor, Tensor]  # N cells of the canvas: rows and positions, [N] each

# The value of a new or padded cell, for each per-position tensor.
_FILL = {
    "tokens": 0,
    "masked": False,
    "given": True,
    "answer": False,
    "commit_step": -1,
    "revoked_times": 0,
    "slot": -1,
    "anchor": -1,
    "trail": 0.0,
    "credit_token": -1,
    "credit": 0.0,
}


@dataclass(frozen=True)
class Member:
    """What a row has beside its tensors."""

    key: int  # of the request
    length: int | None  # how many tokens of the answer are wanted
    generator: torch.Generator
    identity: int  # for caches: never used twice


@dataclass(frozen=True)
class Layout:
    """Where the open windows and the answers of B rows lie; it stays until a window moves."""

    start: Tensor  # [B] as in the state, and so are the next three
    stop: Tensor
    origin: Tensor
    end: Tensor
    window: Tensor  # [B, L] True inside the open window
    behind: Tensor  # [B, L] True from its first position on
    width: int  # of the widest window
    offset: Tensor  # [B] the window's start, counted from the answer's
    answer_length: Tensor  # [B]
    answer: tuple[int, int] | None  # start and end of the answer, if there is only one row

    @classmethod
    def of(cls, state: State) -> Layout:
        """The layout of the rows of a state."""
        start, stop, origin, end = state.start, state.stop, state.origin, state.end
        place = torch.arange(state.tokens.shape[-1], device=start.device)
        behind = place >= start[:, None]
        return cls(
            start,
            stop,
            origin,
            end,
            window=behind & (place < stop[:, None]),
            behind=behind,
            width=int((stop - start).max()),
            offset=start - origin,
            answer_length=end - origin,
            answer=(int(origin), int(end)) if len(start) == 1 else None,
        )

    def is_of(self, state: State) -> bool:
        """Whether it is still that of a state, whose tensors are replaced when they change."""
        return (
            self.start is state.start
            and self.stop is state.stop
            and self.origin is state.origin
            and self.end is state.end
            and self.window.shape[-1] == state.tokens.shape[-1]
        )


@dataclass
class State:
    """Everything about B rows on canvases of up to L positions."""

    # per row: [B]
    length: Tensor  # of the canvas
    origin: Tensor  # first position of the answer
    end: Tensor  # one past its last
    grid: Tensor  # where blocks are counted from: the answer, or 0 for most block-causal models
    lead: Tensor  # width of the blocks whose first position is a window of its own; 0: none
    start: Tensor  # first position of the open window
    stop: Tensor  # one past its last
    step: Tensor  # forwards spent in the window
    opened: Tensor  # masks in the window when it was opened
    num_windows: Tensor  # windows with masks at the beginning
    windows: Tensor  # windows opened before the open one
    sizing: Tensor  # bool: nothing is committed yet, the canvas is still growing
    nfe: Tensor  # forwards of the row
    kl_error: Tensor  # how much higher a KL of the row may be than was computed, float64
    # per position: [B, L, ...]
    tokens: Tensor
    masked: Tensor  # still [MASK]
    given: Tensor  # fixed before decoding began (padding too)
    answer: Tensor  # positions that decoding fills
    commit_step: Tensor  # the forward (from 0) that fixed it, -1 before
    revoked_times: Tensor
    slot: Tensor  # row of the kept logits of the last forward, -1: none
    anchor: Tensor  # row of the kept logits at commit, -1: none
    trail: Tensor  # [B, L, n] last values of KL(current || previous), newest last
    credit_token: Tensor  # [B, L, K] tokens that have credit, -1: free
    credit: Tensor  # [B, L, K]
    memory: MemoryStore  # of the rule's parts

    def __post_init__(self) -> None:
        self._layout: Layout | None = None

    @property
    def layout(self) -> Layout:
        """Where the open windows and the answers lie; made anew only when one of them moves."""
        made = self._layout
        if made is None or not made.is_of(self):
            made = self._layout = Layout.of(self)
        return made

    @property
    def window(self) -> Tensor:
        """True inside each row's open window: [B, L]."""
        return self.layout.window

    @classmethod
    def of(
        cls,
        canvases: Sequence[Tensor],
        mask_id: int,
        block: int | None,
        trail: int,
        from_zero: bool = False,
        memory: tuple[PartMemory, ...] = (),
    ) -> State:
        """A row for each canvas, before its first window is opened."""
        device = canvases[0].device
        length = torch.tensor([len(canvas) for canvas in canvases], device=device)
        tokens = torch.nn.utils.rnn.pad_sequence(list(canvases), batch_first=True)
        place = torch.arange(tokens.shape[-1], device=device)
        masked = (tokens == mask_id) & (place < length[:, None])
        origin = masked.to(torch.uint8).argmax(-1)
        end = tokens.shape[-1] - masked.flip(-1).to(torch.uint8).argmax(-1)
        grid = torch.zeros_like(origin) if from_zero else origin
        width = end - grid if block is None else torch.full_like(origin, block)
        window = (place - grid[:, None]).clamp_min(0) // width[:, None]
        filled = torch.zeros_like(tokens).scatter_reduce(-1, window, masked.long(), "amax")
        zero = torch.zeros_like(origin)

        def cells(name: str, *more: int, dtype: torch.dtype = torch.int64) -> Tensor:
            return torch.full((*tokens.shape, *more), _FILL[name], dtype=dtype, device=device)

        return cls(
            length=length,
            origin=origin,
            end=end,
            grid=grid.clone(),
            start=origin.clone(),
            stop=origin.clone(),
            **{name: zero.clone() for name in ("lead", "step", "opened", "nfe")},
            num_windows=filled.sum(-1),
            windows=zero - 1,
            sizing=torch.zeros_like(origin, dtype=torch.bool),
            kl_error=zero.double(),
            tokens=tokens,
            masked=masked,
            given=~masked,
            answer=masked.clone(),
            **{name: cells(name) for name in ("commit_step", "revoked_times", "slot", "anchor")},
            trail=cells("trail", trail, dtype=torch.float64),
            credit_token=cells("credit_token", 1),
            credit=cells("credit", 1, dtype=torch.float64),
            memory=MemoryStore.of(memory, *tokens.shape),
        )

    @property
    def committed(self) -> Tensor:
        """Positions of the open window that decoding has fixed: [B, L]."""
        return self.window & self.answer & ~self.masked

    def commit(self, cells: Where, tokens: Tensor) -> None:
        """Write tokens into N cells in this forward."""
        self.tokens[cells] = tokens
        self.masked[cells] = False
        self.commit_step[cells] = self.nfe[cells[0]]

    def take_back(self, cells: Where, mask_id: int) -> None:
        """Mask N cells again and forget their history."""
        self.tokens[cells] = mask_id
        self.masked[cells] = True
        self.revoked_times[cells] += 1
        for name in ("commit_step", "slot", "anchor", "trail", "credit_token", "credit"):
            getattr(self, name)[cells] = _FILL[name]

    def set_credit(self, where: Where, tokens: Tensor, credit: Tensor) -> None:
        """Write the credit of N cells, [N, K] each; K may be larger than before."""
        missing = (0, credit.shape[-1] - self.credit.shape[-1])
        if missing[1]:
            self.credit_token = pad(self.credit_token, missing, value=_FILL["credit_token"])
            self.credit = pad(self.credit, missing, value=_FILL["credit"])
        self.credit_token[where], self.credit[where] = tokens, credit

    def relay(self, source: Tensor, length: Tensor) -> None:
        """Lay the canvases out anew: position i of a row was `source[i]`, or is empty below 0."""
        empty, grown = source < 0, length - self.length
        for name, fill in _FILL.items():
            cells = getattr(self, name)
            cells = cells[torch.arange(len(self))[:, None], source.clamp_min(0)]
            cells[empty] = fill
            setattr(self, name, cells)
        self.memory.relay(source)
        self.length, self.end = length, self.end + grown

    def taken(self, rows: Tensor) -> State:
        """A copy of these rows, in this order."""
        return State(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    @classmethod
    def joined(cls, parts: Sequence[State]) -> State:
        """All rows in order, on canvases of the greatest length."""
        if len(parts) == 1:
            return parts[0]
        first, *others = (part.memory for part in parts)
        length = max(part.tokens.shape[-1] for part in parts)
        tensors_of: dict[str, Any] = {"memory": first.joined(others, length)}
        for field in fields(cls):
            if field.name in tensors_of:
                continue
            tensors = [getattr(part, field.name) for part in parts]
            if field.name in _FILL:
                shape = [max(sizes) for sizes in zip(*(t.shape[1:] for t in tensors), strict=True)]
                tensors = [_fit(t, shape, _FILL[field.name]) for t in tensors]
            tensors_of[field.name] = torch.cat(tensors)
        return cls(**tensors_of)

    def __len__(self) -> int:
        return self.length.shape[0]


def _fit(cells: Tensor, shape: list[int], fill: float) -> Tensor:
    """Pad every dimension after the first at its end."""
    padding = []
    for have, want in zip(reversed(cells.shape[1:]), reversed(shape), strict=True):
        padding += [0, want - have]
    return pad(cells, padding, value=fill) if any(padding) else cells
