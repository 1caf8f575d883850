"""Any function `ids -> logits` as a denoiser."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from unmask.errors import ModelError
from unmask.models.base import Canvas, Hidden, ModelSpec


class FunctionDenoiser:
    """Calls `function(ids [b, l]) -> logits [b, l, V]` on rows of equal length, unpadded.

    A plain function knows nothing of padding, so rows of unequal length go in calls of their own.
    With `shift` the logits at position i - 1 predict token i, as Dream's do.
    """

    def __init__(
        self,
        function: Callable[[Tensor], Tensor],
        spec: ModelSpec,
        *,
        shift: bool = False,
        device: torch.device | str = "cpu",
    ) -> None:
        self.function = function
        self.spec = spec
        self.shift = shift
        self.device = torch.device(device)

    def trunk(self, canvas: Canvas) -> Hidden:
        lengths = canvas.lengths.tolist()
        first = self._logits(canvas.tokens[:, : lengths[0]]) if len(set(lengths)) == 1 else None
        if first is not None:
            return Hidden(first)
        rows, width = canvas.tokens.shape
        whole: Tensor | None = None
        for length in sorted(set(lengths)):
            which = canvas.lengths == length
            logits = self._logits(canvas.tokens[which, :length])
            if whole is None:
                whole = logits.new_zeros(rows, width, logits.shape[-1])
            whole[which, :length] = logits
        return Hidden(whole)

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        source = (positions - 1).clamp_min(0) if self.shift else positions
        logits: Tensor = hidden.states[rows, source]
        return logits

    def _logits(self, ids: Tensor) -> Tensor:
        logits = self.function(ids)
        expected = (*ids.shape, self.spec.vocab_size)
        if tuple(logits.shape) != expected:
            raise ModelError(
                f"{self.spec.name}: the function gave logits of shape {tuple(logits.shape)} for "
                f"ids of shape {tuple(ids.shape)}; expected {expected}"
            )
        return logits


def from_function(
    function: Callable[[Tensor], Tensor],
    *,
    mask_id: int,
    vocab_size: int,
    eos_id: int | None = None,
    shift: bool = False,
    device: torch.device | str = "cpu",
) -> FunctionDenoiser:
    """Make any function `ids [b, l] -> logits [b, l, V]` a denoiser."""
    spec = ModelSpec(mask_id, vocab_size, eos_id, name=getattr(function, "__name__", "function"))
    return FunctionDenoiser(function, spec, shift=shift, device=device)
