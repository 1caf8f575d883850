"""The seam to any model: a trunk over the canvas, and a head over the rows that are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from unmask.errors import ModelError


@dataclass(frozen=True)
class ModelSpec:
    """What decoding must know of a model: its special tokens and the size of its vocabulary.

    `eos_id` pads the tail of an answer and is what `eos="suppress"` forbids. `stop_ids` are all
    tokens that end an answer (EOS, and for chat models the end-of-turn token).
    """

    mask_id: int
    vocab_size: int
    eos_id: int | None = None
    stop_ids: tuple[int, ...] = ()
    name: str = "model"
    block: int | None = None  # block-causal attention: windows are blocks of this width from 0

    def __post_init__(self) -> None:
        if self.eos_id is not None and not self.stop_ids:
            object.__setattr__(self, "stop_ids", (self.eos_id,))
        own = () if self.eos_id is None else (self.eos_id,)
        for token in (self.mask_id, *own, *self.stop_ids):
            if not 0 <= token < self.vocab_size:
                raise ModelError(
                    f"{self.name}: special token {token} lies outside the vocabulary "
                    f"0..{self.vocab_size - 1}"
                )


@dataclass(frozen=True)
class Canvas:
    """What a model sees in one forward: B rows of unequal length, padded on the right.

    What stands at or beyond a row's length must not change what the model says about the row. All
    of it lies in the host's memory, whatever the model runs on: looking at it costs no wait.
    """

    tokens: Tensor  # [B, L]
    lengths: Tensor  # [B]
    masked: Tensor  # [B, L]  True where still [MASK] and to be filled
    given: Tensor  # [B, L]  True where the token was there before decoding began (the prompt)
    start: Tensor  # [B]     first position of the active window: a hint for caches
    stop: Tensor  # [B]     one past its last position
    keys: tuple[int, ...]  # an identity for each row, never used for another: caches keep by it


@dataclass(frozen=True)
class Hidden:
    """What a trunk leaves for its head. `fresh` is False where a cache did not recompute."""

    states: Any
    fresh: Tensor | None = None  # [B, L] bool, on the host; None: everything is of this forward


def ship(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the host on the model's device, without waiting for either."""
    if device.type == "cuda" and torch.cuda.is_available():
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def read_at(positions: Tensor, shift: bool) -> Tensor:
    """Where the prediction of a token is read: at itself, or of shifted models (Dream) before."""
    return (positions - 1).clamp_min(0) if shift else positions


class Denoiser(Protocol):
    """A model, or a wrapper around one (cache, guidance, noise)."""

    @property
    def spec(self) -> ModelSpec: ...

    @property
    def device(self) -> torch.device: ...

    def trunk(self, canvas: Canvas) -> Hidden:
        """One forward pass over the canvas, up to the last hidden states."""
        ...

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        """Logits of the tokens at (rows[n], positions[n]): [N, V], a tensor of its own.

        The cells come from the host; the logits stay on the model's device.
        """
        ...
