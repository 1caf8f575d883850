"""The interface of a model: a trunk over the canvas, and a head over the requested cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from unmask.errors import ModelError, shown
from unmask.models.recommended import Recommendation

MOST_BLOCK = 1 << 12  # positions; a canvas is filled up to whole blocks, and attention is square


@dataclass(frozen=True)
class ModelSpec:
    """The special tokens of a model, the size of its vocabulary, and its block width.

    `eos_id` pads the tail of an answer; `eos="suppress"` forbids it. `stop_ids` are all tokens
    that end an answer (EOS, and for chat models the end-of-turn token).
    """

    mask_id: int
    vocab_size: int
    eos_id: int | None = None
    stop_ids: tuple[int, ...] = ()
    name: str = "model"
    block: int | None = None  # block-causal attention: windows are blocks of this width
    from_prompt_end: bool = False  # these blocks count from the prompt's end, else from position 0
    lead: bool = False  # the first token of a block is written alone, from the block before it
    shadows: bool = False  # whether a forward can look at positions without their own tokens
    newline_id: int | None = None  # the token of a line break, if it is a token of its own
    recommended: Recommendation | None = field(default=None, compare=False)  # None: not known

    def __post_init__(self) -> None:
        if self.eos_id is not None and not self.stop_ids:
            object.__setattr__(self, "stop_ids", (self.eos_id,))
        if not isinstance(self.vocab_size, int) or self.vocab_size < 1:
            raise ModelError(
                f"{self.name}: vocab_size must be a whole number >= 1, got {shown(self.vocab_size)}"
            )
        own = {"mask_id": self.mask_id, "eos_id": self.eos_id, "newline_id": self.newline_id}
        named = [
            (key, token) for key, token in own.items() if key == "mask_id" or token is not None
        ]
        for key, token in [*named, *(("stop_ids", token) for token in self.stop_ids)]:
            if not isinstance(token, int) or not 0 <= token < self.vocab_size:
                raise ModelError(
                    f"{self.name}: {key} {shown(token)} lies outside the vocabulary "
                    f"0..{self.vocab_size - 1}; give the right one"
                )
        if self.mask_id in self.stop_ids:  # no such token could be written, and a mask would end it
            raise ModelError(
                f"{self.name}: the mask token {self.mask_id} also ends an answer; give the right "
                "one as mask_id"
            )
        if self.block is not None and not 1 <= self.block <= MOST_BLOCK:
            raise ModelError(
                f"{self.name} attends in blocks, and block must be from 1 to {MOST_BLOCK}, got "
                f"{shown(self.block)}; give another, or leave it out"
            )


@dataclass(frozen=True)
class Canvas:
    """The input of one forward: B rows of unequal length, padded on the right.

    The padding of a row must not change the model's output for that row. All tensors are in the
    host's memory, even if the model runs on a GPU, so reading them never waits for the GPU.
    """

    tokens: Tensor  # [B, L]
    lengths: Tensor  # [B]
    masked: Tensor  # [B, L]  True where still [MASK] and to be filled
    given: Tensor  # [B, L]  True where the token was there before decoding (the prompt)
    start: Tensor  # [B]     first position of the active window: a hint for caches
    stop: Tensor  # [B]     one past its last position
    keys: tuple[int, ...]  # one key per row, never reused for another row; caches use it
    # Asks for `Hidden.shadow`: masks that stand for the window's positions a second time. Such a
    # mask attends to all positions but its own, and no position attends to it.
    shadow: bool = False
    # [B, L]  False where the output for a token is never read, so that the last layer skips it;
    # None: every output may be read.
    read: Tensor | None = None


@dataclass(frozen=True)
class Hidden:
    """The output of a trunk, for its head. `fresh` is False where a cache did not recompute."""

    states: Any
    fresh: Tensor | None = None  # [B, L] bool, on the host; None: everything was computed
    shadow: Hidden | None = None  # of the windows' positions, where the canvas asks for it


def ship(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor from the host to the model's device without waiting for the device."""
    if device.type == "cuda" and torch.cuda.is_available():
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def read_at(positions: Tensor, shift: bool) -> Tensor:
    """The positions whose output predicts these tokens: one earlier in shifted models (Dream)."""
    return (positions - 1).clamp_min(0) if shift else positions


def cells(states: Tensor, rows: Tensor, positions: Tensor, shift: bool = False) -> Tensor:
    """The states that predict the tokens at (rows[n], positions[n]): [B, L, D] -> [N, D]."""
    source = read_at(positions, shift)
    return states[ship(rows, states.device), ship(source, states.device)]


class Denoiser(Protocol):
    """A model, or a wrapper around one (cache, guidance, noise)."""

    @property
    def spec(self) -> ModelSpec: ...

    @property
    def device(self) -> torch.device: ...

    def trunk(self, canvas: Canvas) -> Hidden:
        """One forward pass over the canvas, up to the last hidden states."""

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        """Logits of the tokens at (rows[n], positions[n]): [N, V], a new tensor.

        `rows` and `positions` are on the host; the logits stay on the model's device.
        """


def check_denoiser(model: object) -> None:
    """Raise unless a model is a denoiser."""
    if not hasattr(model, "trunk") or not hasattr(model, "spec"):
        raise ModelError(
            f"{type(model).__name__} is not a denoiser; write model, tokenizer = unmask.load(...), "
            "or make it one with unmask.wrap"
        )
