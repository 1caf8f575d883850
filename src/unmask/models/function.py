"""Any function `ids -> logits` as a denoiser."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from unmask.errors import ModelError
from unmask.models.denoiser import Canvas, Hidden, ModelSpec, cells, ship


class FunctionDenoiser:
    """Calls `function(ids [b, l]) -> logits [b, l, V]` on rows of equal length, unpadded.

    A plain function cannot handle padding, so rows of each length go in a separate call. With
    `shift` the logits at position i - 1 predict token i, as in Dream.
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
        return Hidden(by_length(canvas.tokens, canvas.lengths, self._logits))

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        return cells(hidden.states, rows, positions, self.shift)

    def _logits(self, ids: Tensor) -> Tensor:
        logits = self.function(ship(ids, self.device))
        if not isinstance(logits, Tensor) or not logits.dtype.is_floating_point:
            kind = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
            raise ModelError(f"{self.spec.name}: the function must return float logits, got {kind}")
        expected = (*ids.shape, self.spec.vocab_size)
        if tuple(logits.shape) != expected:
            raise ModelError(
                f"{self.spec.name}: the function returned logits of shape {tuple(logits.shape)} "
                f"for ids of shape {tuple(ids.shape)}; expected {expected}"
            )
        return logits


def by_length(tokens: Tensor, lengths: Tensor, call: Callable[[Tensor], Tensor]) -> Tensor:
    """Call a function on rows of equal length, without their padding: [B, L] -> [B, L, ...]."""
    sizes = sorted(set(lengths.tolist()))
    if sizes == [tokens.shape[-1]]:
        return call(tokens)
    whole: Tensor | None = None
    for size in sizes:
        which = (lengths == size).nonzero()[:, 0]
        part = call(tokens[which, :size])
        if whole is None:
            whole = part.new_zeros(*tokens.shape, *part.shape[2:])
        whole[ship(which, part.device), :size] = part
    assert whole is not None
    return whole


def from_function(
    function: Callable[[Tensor], Tensor],
    *,
    mask_id: int,
    vocab_size: int,
    eos_id: int | None = None,
    shift: bool = False,
    device: torch.device | str = "cpu",
) -> FunctionDenoiser:
    """Make a denoiser of any function `ids [b, l] -> logits [b, l, V]`."""
    spec = ModelSpec(mask_id, vocab_size, eos_id, name=getattr(function, "__name__", "function"))
    return FunctionDenoiser(function, spec, shift=shift, device=device)
