"""What the readers of several families share: checks of sizes and lists of tensors."""

from __future__ import annotations

from unmask.models.architecture import Architecture
from unmask.models.config import Config
from unmask.models.family import Target, Tensors, TensorSource


def check_heads(
    c: Config, hidden: int, heads: int, kv_heads: int, keys: tuple[str, str, str]
) -> None:
    """Raise unless the heads divide the width and the key heads divide the heads."""
    if hidden % heads:
        raise c.wrong(keys[1], heads, f"a divisor of {keys[0]} = {hidden}")
    if heads % kv_heads:
        raise c.wrong(keys[2], kv_heads, f"a divisor of {keys[1]} = {heads}")


def check_even(c: Config, head_dim: int, keys: tuple[str, str, str]) -> None:
    """Raise unless the features of a head make pairs, which rotate together."""
    if head_dim % 2 and c.get("head_dim"):
        raise c.wrong("head_dim", head_dim, "even")
    if head_dim % 2:
        allowed = f"an even multiple of {keys[1]} = {c.whole(keys[1])}, so that head_dim is even"
        raise c.wrong(keys[0], c.whole(keys[0]), allowed)


def outer_tensors(arch: Architecture, embed: str, norm: str, head: str) -> Tensors:
    """The embedding first, the last norm, and the head unless it is the embedding."""
    yield Target("embed.weight"), TensorSource(f"{embed}.weight")
    yield Target("norm.weight"), TensorSource(f"{norm}.weight")
    if not arch.tied:
        yield Target("head.weight"), TensorSource(f"{head}.weight")


def norm_and_mlp_tensors(
    arch: Architecture, layer: int, theirs: str, shared: str, bias: str
) -> Tensors:
    """The norms of a layer, and its dense MLP or its router, experts and shared expert."""
    mine, mlp = f"layers.{layer}.", f"{theirs}mlp."
    yield Target(f"{mine}attn_norm.weight"), TensorSource(f"{theirs}input_layernorm.weight")
    after = TensorSource(f"{theirs}post_attention_layernorm.weight")
    yield Target(f"{mine}mlp_norm.weight"), after
    if not arch.has_experts(layer):
        for part in ("gate", "up", "down"):
            yield Target(f"{mine}mlp.{part}.weight"), TensorSource(f"{mlp}{part}_proj.weight")
        return
    assert arch.experts is not None
    yield Target(f"{mine}mlp.router"), TensorSource(f"{mlp}gate.weight")
    if arch.experts.bias:
        yield Target(f"{mine}mlp.bias"), TensorSource(f"{mlp}{bias}")
    for part in ("gate", "up", "down"):
        for expert in range(arch.experts.count):
            source = f"{mlp}experts.{expert}.{part}_proj.weight"
            yield Target(f"{mine}mlp.{part}", expert), TensorSource(source)
        if arch.experts.shared_width:
            source = f"{theirs}{shared}{part}_proj.weight"
            yield Target(f"{mine}shared.{part}.weight"), TensorSource(source)
