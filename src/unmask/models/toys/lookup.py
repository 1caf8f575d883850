"""The toy denoiser of the golden traces: logits from integer tables, exact to the bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from unmask.models.denoiser import Canvas, Hidden, ModelSpec, cells, ship


class LookupDenoiser:
    """logits[i] = P[i] + sum_{j != i} G[x_j] + sum_{1 <= |j-i| <= R} W[j-i+R, x_j].

    The tables hold multiples of 1/4096, so the sums are exact in float32 in any order. Masks (and
    padding) carry no information, and a row never depends on its own token.
    """

    def __init__(
        self, place: Tensor, everywhere: Tensor, near: Tensor, spec: ModelSpec, shift: bool = False
    ) -> None:
        self.place = place  # [L, V]
        self.everywhere = everywhere  # [V, V]
        self.near = near.clone()  # [2R + 1, V, V]
        self.near[len(near) // 2] = 0.0  # a token does not change the logits of its own position
        self.spec = replace(spec, shadows=not shift)
        self.shift = shift
        self.device = place.device

    @classmethod
    def load(
        cls, file: Path, spec: ModelSpec, dtype: torch.dtype = torch.float64, shift: bool = False
    ) -> LookupDenoiser:
        """Read the tables `P_q`, `G_q`, `W_q` and their `denom` from an .npz file."""
        with np.load(file) as tables:
            denominator = float(tables["denom"])
            place, everywhere, near = (
                (torch.from_numpy(tables[name].astype(np.float64)) / denominator).to(dtype)
                for name in ("P_q", "G_q", "W_q")
            )
        return cls(place, everywhere, near, spec, shift)

    def trunk(self, canvas: Canvas) -> Hidden:
        length = canvas.tokens.shape[-1]
        inside = torch.arange(length) < canvas.lengths[:, None]
        tokens = ship(canvas.tokens.masked_fill(~inside, self.spec.mask_id), self.device)
        said = self.everywhere[tokens]  # [B, L, V]
        logits = self.place[:length] + said.sum(1, keepdim=True) - said
        span = len(self.near)
        around = pad(tokens, (span // 2, span // 2), value=self.spec.mask_id).unfold(1, span, 1)
        near = self.near[torch.arange(span, device=self.device), around]  # [B, L, 2R + 1, V]
        logits = logits + near.sum(2)  # no position sees its own token: it is its own shadow
        return Hidden(logits, shadow=Hidden(logits) if canvas.shadow else None)

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        return cells(hidden.states, rows, positions, self.shift)
