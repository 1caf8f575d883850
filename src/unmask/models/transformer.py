"""The transformer of all families: pre-norm, rotary, gated MLP or experts, any attention mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (the field's name for it)

from unmask.models.architecture import Architecture
from unmask.models.layers import (
    Embedding,
    Linear,
    MixtureOfExperts,
    RMSNorm,
    Rotary,
    RotaryTable,
    added,
    gated,
)
from unmask.models.products import linear


class KeyValues(Protocol):
    """A cache: takes new keys and values, and returns those of all positions."""

    length: int  # of the canvas; every position is smaller

    def update(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """[B, H, Q, D] of this forward's positions -> [B, H, K, D] of all positions."""


class Attention(nn.Module):
    """Grouped-query attention, optionally with biases and per-head norms."""

    def __init__(self, arch: Architecture) -> None:
        super().__init__()
        self.arch = arch
        wide, narrow = arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim
        self.q = Linear(arch.hidden, wide, bias=arch.qkv_bias)
        self.k = Linear(arch.hidden, narrow, bias=arch.qkv_bias)
        self.v = Linear(arch.hidden, narrow, bias=arch.qkv_bias)
        self.o = Linear(wide, arch.hidden, bias=False)
        if arch.qk_norm:
            self.q_norm = RMSNorm(arch.head_dim, arch.norm_eps)
            self.k_norm = RMSNorm(arch.head_dim, arch.norm_eps)

    def forward(
        self,
        x: Tensor,
        rotary: Rotary,
        mask: Tensor | None,
        layer: int,
        cache: KeyValues | None,
        asked: Tensor | None = None,
    ) -> Tensor:
        """Attention of the positions `asked`, or of all, to all positions."""
        arch = self.arch
        asking, asking_rotary = x, rotary
        if asked is not None:
            asking, asking_rotary = x[:, asked], rotary.at_places(asked)
            mask = queries_of(mask, asked)
        q, k, v = (
            linear(states).view(*states.shape[:2], -1, arch.head_dim)
            for linear, states in ((self.q, asking), (self.k, x), (self.v, x))
        )
        if arch.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = asking_rotary.turn(q), rotary.turn(k)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)  # [B, H, Q, D]
        if cache is not None:
            k, v = cache.update(layer, k, v)
        grouped = arch.heads != arch.kv_heads
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=grouped)
        out: Tensor = self.o(y.transpose(1, 2).flatten(2))
        return out


class GatedMLP(nn.Module):
    """down(activation(gate(x)) * up(x))."""

    def __init__(
        self, hidden: int, width: int, activation: Callable[[Tensor], Tensor] = F.silu
    ) -> None:
        super().__init__()
        self.activation = activation
        self.gate = Linear(hidden, width, bias=False)
        self.up = Linear(hidden, width, bias=False)
        self.down = Linear(width, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down(gated(self.activation, self.gate(x), self.up(x)))
        return out


class Layer(nn.Module):
    """Two residual branches: attention, then the MLP or the experts."""

    def __init__(self, arch: Architecture, index: int) -> None:
        super().__init__()
        self.attn_norm = RMSNorm(arch.hidden, arch.norm_eps)
        self.attn = Attention(arch)
        self.mlp_norm = RMSNorm(arch.hidden, arch.norm_eps)
        if arch.has_experts(index):
            assert arch.experts is not None
            self.mlp: nn.Module = MixtureOfExperts(arch.hidden, arch.experts)
            if arch.experts.shared_width:
                self.shared = GatedMLP(arch.hidden, arch.experts.shared_width)
        else:
            self.mlp = GatedMLP(arch.hidden, arch.mlp)
        self.index = index

    def forward(
        self,
        x: Tensor,
        rotary: Rotary,
        mask: Tensor | None,
        cache: KeyValues | None,
        asked: Tensor | None = None,
    ) -> Tensor:
        rotary, mask = rotary.to(x.device), None if mask is None else mask.to(x.device)
        attended = self.attn(self.attn_norm(x), rotary, mask, self.index, cache, asked)
        x = added(x if asked is None else x[:, asked], attended)
        h = self.mlp_norm(x)
        y = self.mlp(h)
        if hasattr(self, "shared"):
            y = added(y, self.shared(h))
        return added(x, y)


class Transformer(nn.Module):
    """Token ids to hidden states in `forward`, hidden states to logits in `logits`."""

    def __init__(self, arch: Architecture) -> None:
        super().__init__()
        self.arch = arch
        self.embed = Embedding(arch.vocab_size, arch.hidden)
        self.layers = nn.ModuleList(Layer(arch, index) for index in range(arch.layers))
        self.norm = RMSNorm(arch.hidden, arch.norm_eps)
        if not arch.tied:
            self.head = Linear(arch.hidden, arch.vocab_size, bias=False)
        self.rotary = RotaryTable(arch)

    def forward(
        self,
        tokens: Tensor,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        cache: KeyValues | None = None,
        asked: Tensor | None = None,
    ) -> Tensor:
        """The last hidden states, normalised: [B, Q] -> [B, Q, D].

        `mask` is a bool [B or 1, 1, Q or 1, K], True where a query may attend; None: everywhere.
        With `asked`, places [N] among the Q, the last layer computes only these: [B, N, D].
        """
        x = self.embed(tokens)
        if positions is None:
            rotary = self.rotary.first(tokens.shape[-1], x)
        elif cache is not None:
            rotary = self.rotary.at(positions.to(x.device), cache.length, x)
        else:
            rotary = Rotary.at(self.arch, positions.to(x.device), x.dtype)
        *most, last = self.layers
        for layer in most:
            x = layer(x, rotary, mask, cache)
        x = last(x, rotary, mask, cache, None if asked is None else asked.to(x.device))
        out: Tensor = self.norm(x)
        return out

    def logits(self, hidden: Tensor) -> Tensor:
        """The head: [..., D] -> [..., V]."""
        if not self.arch.tied:
            out: Tensor = self.head(hidden)
            return out
        return linear(hidden.to(self.embed.weight.device), self.embed.weight)


def queries_of(mask: Tensor | None, asked: Tensor) -> Tensor | None:
    """The part of an attention mask for some queries; one row that serves all stays as it is."""
    return mask[..., asked, :] if mask is not None and mask.shape[-2] > 1 else mask


def block_causal(queries: Tensor, keys: Tensor, block: int) -> Tensor:
    """True where a key's block is not after the query's: positions [B, Q], [B, K] -> [B, Q, K]."""
    return (queries // block)[..., :, None] >= (keys // block)[..., None, :]
