"""The sizes and options in which model families differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Experts:
    """A mixture-of-experts MLP and how its router chooses."""

    count: int
    top_k: int
    width: int  # hidden size of one expert
    shared_width: int = 0  # hidden size of the expert that every token visits; 0: none
    scoring: Literal["softmax", "sigmoid"] = "softmax"
    normalise: bool = False  # divide the weights of several chosen experts by their sum
    scale: float = 1.0  # factor of the weights, after that
    groups: int = 1  # groups of experts; only the best `top_groups` groups are used
    top_groups: int = 1
    bias: bool = False  # a learned bias on the scores
    bias_in_weight: bool = False  # the bias changes the weights too, not only the choice


@dataclass(frozen=True)
class LocalAttention:
    """Layers that see near positions only; the others see all."""

    reach: int  # the largest distance that a local layer sees
    layers: frozenset[int]  # the local ones
    rope_theta: float  # of the local layers


@dataclass(frozen=True)
class Architecture:
    """A pre-norm transformer with rotary positions and gated MLPs, or experts."""

    vocab_size: int  # rows of the embedding and of the head
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp: int  # hidden size of the dense MLP
    norm_eps: float
    rope_theta: float
    rotary_dim: int  # features of a head that are rotated, in half-split layout
    rope_in_float32: bool = False  # LLaDA rotates queries and keys in float32
    qkv_bias: bool = False
    qk_norm: bool = False  # RMS norm of every query and key head
    tied: bool = False  # the head is the embedding
    experts: Experts | None = None
    dense_layers: frozenset[int] = frozenset()  # layers without experts, in a model with experts
    block: int | None = None  # block-causal attention of this width; None: full
    from_prompt_end: bool = False  # blocks are counted from the prompt's end, else from position 0
    shift: bool = False  # the output at i - 1 predicts token i
    local: LocalAttention | None = None  # ModernBERT
    positions: int | None = None  # learned positions instead of rotary ones (GPT-2)

    def has_experts(self, layer: int) -> bool:
        """Whether a layer's MLP is a mixture of experts."""
        return self.experts is not None and layer not in self.dense_layers
