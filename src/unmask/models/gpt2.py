"""GPT-2 without its causal mask: learned positions, LayerNorm with bias, one fused projection."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (the field's name for it)

from unmask.errors import ModelError
from unmask.models.architecture import Architecture
from unmask.models.layers import Embedding, LayerNorm, Linear, added
from unmask.models.products import linear
from unmask.models.transformer import KeyValues, queries_of


class Gpt2Layer(nn.Module):
    """Two residual branches: attention, then a plain MLP with gelu."""

    def __init__(self, arch: Architecture, index: int) -> None:
        super().__init__()
        self.attn_norm = LayerNorm(arch.hidden, arch.norm_eps, bias=True)
        self.qkv = Linear(arch.hidden, 3 * arch.hidden)
        self.o = Linear(arch.hidden, arch.hidden)
        self.mlp_norm = LayerNorm(arch.hidden, arch.norm_eps, bias=True)
        self.up = Linear(arch.hidden, arch.mlp)
        self.down = Linear(arch.mlp, arch.hidden)
        self.head_dim, self.index = arch.head_dim, index

    def forward(
        self, x: Tensor, mask: Tensor | None, cache: KeyValues | None, asked: Tensor | None = None
    ) -> Tensor:
        mask = None if mask is None else mask.to(x.device)
        attended = self._attention(self.attn_norm(x), mask, cache, asked)
        x = added(x if asked is None else x[:, asked], attended)
        h = self.up(self.mlp_norm(x))
        return added(x, self.down(F.gelu(h, approximate="tanh")))

    def _attention(
        self, x: Tensor, mask: Tensor | None, cache: KeyValues | None, asked: Tensor | None
    ) -> Tensor:
        """Attention of the positions `asked`, or of all, to all positions."""
        parts = self.qkv(x).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (-1, self.head_dim)).transpose(1, 2) for part in parts)
        if cache is not None:
            k, v = cache.update(self.index, k, v)
        if asked is not None:
            q, mask = q[:, :, asked], queries_of(mask, asked)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        out: Tensor = self.o(y.transpose(1, 2).flatten(2))
        return out


class Gpt2(nn.Module):
    """Token ids to hidden states in `forward`, hidden states to logits in `logits`."""

    def __init__(self, arch: Architecture) -> None:
        super().__init__()
        assert arch.positions is not None
        self.arch, self.positions = arch, arch.positions
        self.embed = Embedding(arch.vocab_size, arch.hidden)
        self.places = Embedding(arch.positions, arch.hidden)
        self.layers = nn.ModuleList(Gpt2Layer(arch, index) for index in range(arch.layers))
        self.norm = LayerNorm(arch.hidden, arch.norm_eps, bias=True)

    def forward(
        self,
        tokens: Tensor,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        cache: KeyValues | None = None,
        asked: Tensor | None = None,
    ) -> Tensor:
        """The last hidden states, normalised: [B, Q] -> [B, Q, D]; arguments as `Transformer`'s."""
        length = tokens.shape[-1] if cache is None else cache.length
        if length > self.positions:
            raise ModelError(
                f"a canvas of {length} tokens; this model has {self.positions} positions, for the "
                "prompt and the answer together"
            )
        x = self.embed(tokens)
        places = torch.arange(tokens.shape[-1])[None] if positions is None else positions
        x = x + self.places(places.to(self.places.weight.device)).to(x.device)
        *most, last = self.layers
        for layer in most:
            x = layer(x, mask, cache)
        x = last(x, mask, cache, None if asked is None else asked.to(x.device))
        out: Tensor = self.norm(x)
        return out

    def logits(self, hidden: Tensor) -> Tensor:
        """The head, which is the embedding: [..., D] -> [..., V]."""
        return linear(hidden.to(self.embed.weight.device), self.embed.weight)
