"""ModernBERT: local and global layers, LayerNorm, and a head with a dense layer before it."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (the field's name for it)

from unmask.models.architecture import Architecture
from unmask.models.layers import Embedding, LayerNorm, Linear, Rotary, RotaryTable, added
from unmask.models.products import linear
from unmask.models.transformer import Attention, GatedMLP, KeyValues


class ModernBertLayer(nn.Module):
    """Attention, then the MLP; the first layer does not normalise the embeddings again."""

    def __init__(self, arch: Architecture, index: int) -> None:
        super().__init__()
        if index:
            self.attn_norm = LayerNorm(arch.hidden, arch.norm_eps)
        self.attn = Attention(arch)
        self.mlp_norm = LayerNorm(arch.hidden, arch.norm_eps)
        self.mlp = GatedMLP(arch.hidden, arch.mlp, F.gelu)
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
        h = self.attn_norm(x) if self.index else x
        attended = self.attn(h, rotary, mask, self.index, cache, asked)
        x = added(x if asked is None else x[:, asked], attended)
        return added(x, self.mlp(self.mlp_norm(x)))


class PredictionHead(nn.Module):
    """norm(gelu(dense(x))), before the tied embedding; then the bias of every token."""

    def __init__(self, arch: Architecture) -> None:
        super().__init__()
        self.dense = Linear(arch.hidden, arch.hidden, bias=False)
        self.norm = LayerNorm(arch.hidden, arch.norm_eps)
        self.bias = nn.Parameter(torch.empty(arch.vocab_size))

    def forward(self, hidden: Tensor, embedding: Tensor) -> Tensor:
        states = self.norm(F.gelu(self.dense(hidden)))
        return linear(states, embedding.to(states.device), self.bias)


class ModernBert(nn.Module):
    """Token ids to hidden states in `forward`, hidden states to logits in `logits`."""

    def __init__(self, arch: Architecture) -> None:
        super().__init__()
        assert arch.local is not None
        self.arch, self.local = arch, arch.local
        self.embed = Embedding(arch.vocab_size, arch.hidden)
        self.embed_norm = LayerNorm(arch.hidden, arch.norm_eps)
        layers = (ModernBertLayer(arch, index) for index in range(arch.layers))
        self.layers = nn.ModuleList(layers)
        self.norm = LayerNorm(arch.hidden, arch.norm_eps)
        self.prediction = PredictionHead(arch)
        self.rotary = RotaryTable(arch)
        self.local_rotary = RotaryTable(replace(arch, rope_theta=arch.local.rope_theta))

    def forward(
        self,
        tokens: Tensor,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        cache: KeyValues | None = None,
        asked: Tensor | None = None,
    ) -> Tensor:
        """The last hidden states, normalised: [B, Q] -> [B, Q, D]; arguments as `Transformer`'s."""
        x = self.embed_norm(self.embed(tokens))
        places = torch.arange(tokens.shape[-1])[None] if positions is None else positions
        places = places.to(x.device)
        seen = places if cache is None else torch.arange(cache.length, device=x.device)[None]
        near = (places[:, :, None] - seen[:, None]).abs() <= self.local.reach  # [B, Q, K]
        near = near[:, None] if mask is None else near[:, None] & mask.to(x.device)
        length = int(seen.max()) + 1
        turns = [table.at(places, length, x) for table in (self.rotary, self.local_rotary)]
        for index, layer in enumerate(self.layers):
            local = index in self.local.layers
            last = index == len(self.layers) - 1
            some = asked.to(x.device) if last and asked is not None else None
            x = layer(x, turns[local], near if local else mask, cache, some)
        out: Tensor = self.norm(x)
        return out

    def logits(self, hidden: Tensor) -> Tensor:
        """The head: [..., D] -> [..., V]."""
        out: Tensor = self.prediction(hidden, self.embed.weight)
        return out
