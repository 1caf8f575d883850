"""Parts of a transformer layer: linear maps, norms, rotary positions, mixtures of experts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (the field's name for it)

from unmask.kernels.layer import normalise, rotate
from unmask.models.architecture import Architecture, Experts
from unmask.models.products import linear, several_rows


def may_overwrite(result: Tensor) -> bool:
    """Whether a result that only the caller holds may be overwritten: no gradient needs it."""
    return not (torch.is_grad_enabled() and result.requires_grad)


def added(x: Tensor, result: Tensor) -> Tensor:
    """x + result, written over `result` if it may be: new memory takes longer than the sum."""
    fits = result.dtype == x.dtype and result.shape == x.shape
    return result.add_(x) if fits and may_overwrite(result) else x + result


def gated(activation: Callable[[Tensor], Tensor], gate: Tensor, up: Tensor) -> Tensor:
    """activation(gate) * up, written over `gate` if it may be."""
    if activation is not F.silu or not may_overwrite(gate):
        return activation(gate) * up
    return F.silu(gate, inplace=True).mul_(up)


class Linear(nn.Linear):
    """Skips initialisation on the meta device, for which torch would import its compiler."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)

    def reset_parameters(self) -> None:
        if not self.weight.is_meta:
            super().reset_parameters()


class ConvertedLinear(Linear):
    """A linear map that keeps its weight in another form, and so has no parameter `weight`.

    `Checkpoint.fill` calls `convert` as soon as the weight is read, so that memory never holds
    more than one weight in its old form.
    """

    @abstractmethod
    def convert(self, weight: Tensor) -> None:
        """Keep a weight [N, K] in the form of this class."""


class Embedding(nn.Embedding):
    """Skips initialisation on the meta device, as `Linear` does."""

    def reset_parameters(self) -> None:
        if not self.weight.is_meta:
            super().reset_parameters()


class RMSNorm(nn.Module):
    """x / rms(x), normalised in float32 and cast back before the weight, as all families do."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return normalise(x, self.weight, self.eps)


class LayerNorm(nn.Module):
    """(x - mean) / deviation, times a weight, plus a bias if there is one."""

    def __init__(self, size: int, eps: float, bias: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size))
        self.bias = nn.Parameter(torch.empty(size)) if bias else None
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class Rotary(NamedTuple):
    """Cosines and sines of every position's angles: [B, Q, 1, R] each."""

    cos: Tensor
    sin: Tensor  # negative in the first half, where the second feature is subtracted

    @classmethod
    def at(cls, arch: Architecture, positions: Tensor, dtype: torch.dtype) -> Rotary:
        """Compute the angles of positions [B, Q]; frequencies in float32."""
        half = torch.arange(0, arch.rotary_dim, 2, dtype=torch.float32, device=positions.device)
        frequency = 1.0 / arch.rope_theta ** (half / arch.rotary_dim)
        angle = positions[..., None].float() * frequency
        cos, sin = angle.cos()[:, :, None], angle.sin()[:, :, None]
        kept = torch.float32 if arch.rope_in_float32 else dtype
        return cls(torch.cat([cos, cos], -1).to(kept), torch.cat([-sin, sin], -1).to(kept))

    def at_places(self, places: Tensor) -> Rotary:
        """The part for some of the positions, [N]."""
        return Rotary(self.cos[:, places], self.sin[:, places])

    def to(self, device: torch.device) -> Rotary:
        """The same on a device; copies nothing if it is already there."""
        return Rotary(self.cos.to(device), self.sin.to(device))

    def turn(self, x: Tensor) -> Tensor:
        """Rotate the first R features of queries or keys, in half-split layout: [B, Q, H, D]."""
        return rotate(x, self.cos, self.sin)


class RotaryTable:
    """Angles of all positions used so far; computed once, and again only to become longer."""

    def __init__(self, arch: Architecture) -> None:
        self.arch = arch
        self._made: dict[tuple[torch.device, torch.dtype], Rotary] = {}

    def first(self, count: int, like: Tensor) -> Rotary:
        """The angles of positions 0 to `count` - 1, on the device and for the dtype of `like`."""
        key = (like.device, like.dtype)
        made = self._made.get(key)
        if made is None or made.cos.shape[1] < count:
            with torch.inference_mode(False), torch.no_grad():  # training may use it later
                places = torch.arange(max(256, 1 << (count - 1).bit_length()), device=like.device)
                made = self._made[key] = Rotary.at(self.arch, places[None], like.dtype)
        return Rotary(made.cos[:, :count], made.sin[:, :count])

    def at(self, positions: Tensor, count: int, like: Tensor) -> Rotary:
        """The angles of positions [B, Q], which all lie below `count`."""
        made = self.first(count, like)
        return Rotary(made.cos[0, positions], made.sin[0, positions])


class MixtureOfExperts(nn.Module):
    """A router sends each token to a few MLPs: the sum of weight * down(silu(gate(x)) * up(x))."""

    def __init__(self, hidden: int, experts: Experts) -> None:
        super().__init__()
        self.experts = experts
        self.router = nn.Parameter(torch.empty(experts.count, hidden))
        if experts.bias:
            self.bias = nn.Parameter(torch.empty(experts.count, dtype=torch.float32))
        self.gate = nn.Parameter(torch.empty(experts.count, experts.width, hidden))
        self.up = nn.Parameter(torch.empty(experts.count, experts.width, hidden))
        self.down = nn.Parameter(torch.empty(experts.count, hidden, experts.width))

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(0, -2)  # [N, D]
        chosen, weight = self.route(flat)  # [N, k] each
        out = torch.zeros_like(flat)
        for expert in chosen.unique().tolist():  # type: ignore[no-untyped-call]
            rows, slot = (chosen == expert).nonzero(as_tuple=True)
            h = flat[rows]
            h = gated(F.silu, linear(h, self.gate[expert]), linear(h, self.up[expert]))
            h = linear(h, self.down[expert]) * weight[rows, slot, None].to(h.dtype)
            out.index_add_(0, rows, h)
        return out.view_as(x)

    def route(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The experts of each token and their weights, in float32: [N, D] -> [N, k] x 2."""
        e = self.experts
        several = several_rows(x.float())  # a token's route is its own
        logits = F.linear(several, self.router.float())[: len(x)]  # [N, E]
        score = logits.softmax(-1) if e.scoring == "softmax" else logits.sigmoid()
        choice = score + self.bias if e.bias else score
        weight_from = choice if e.bias_in_weight else score
        if e.groups > 1:
            choice = self._best_groups(choice)
        chosen = choice.topk(e.top_k, dim=-1, sorted=False).indices
        weight = weight_from.gather(-1, chosen)
        if e.normalise and e.top_k > 1:
            weight = weight / (weight.sum(-1, keepdim=True) + 1e-20)
        return chosen, weight * e.scale

    def _best_groups(self, choice: Tensor) -> Tensor:
        """-inf outside the groups with the largest sum of two best scores: [N, E] -> [N, E]."""
        e = self.experts
        grouped = choice.view(len(choice), e.groups, -1)  # [N, G, E/G]
        best_two = grouped.topk(2, dim=-1).values.sum(-1)  # [N, G]
        best = best_two.topk(e.top_groups, dim=-1).indices
        kept = torch.zeros_like(best_two, dtype=torch.bool).scatter(-1, best, True)
        return grouped.masked_fill(~kept[..., None], -torch.inf).flatten(-2)
