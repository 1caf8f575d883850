"""LLaDA: config and tensor names."""

from __future__ import annotations

from unmask.models.architecture import Architecture
from unmask.models.config import Config
from unmask.models.family import Target, Tensors, TensorSource
from unmask.models.readers.common import check_even, check_heads, outer_tensors


def read_llada(c: Config) -> Architecture:
    c.refuse(block_type="llama", layer_norm_type="rms", activation_type="silu", rope=True)
    c.refuse(alibi=False, attention_layer_norm=False, input_emb_norm=False, scale_logits=False)
    c.refuse(include_bias=False, bias_for_layer_norm=False, block_group_size=1)
    hidden, heads = c.whole("d_model"), c.whole("n_heads")
    kv_heads = c.whole("n_kv_heads", 1 if c.flag("multi_query_attention", False) else heads)
    keys = ("d_model", "n_heads", "n_kv_heads")
    check_heads(c, hidden, heads, kv_heads, keys)
    check_even(c, hidden // heads, keys)
    return Architecture(
        vocab_size=c.whole("embedding_size" if c.get("embedding_size") else "vocab_size"),
        hidden=hidden,
        layers=c.layers("n_layers"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=hidden // heads,
        mlp=c.whole("mlp_hidden_size", int(c.number("mlp_ratio", 4) * hidden)),
        norm_eps=c.number("rms_norm_eps", 1e-5),
        rope_theta=c.rope_theta(10000.0),
        rotary_dim=hidden // heads,
        rope_in_float32=c.flag("rope_full_precision", True),
        qkv_bias=c.flag("include_qkv_bias", False),
        tied=c.flag("weight_tying", True),
    )


def llada_tensors(arch: Architecture) -> Tensors:
    top = "model.transformer."
    yield from outer_tensors(arch, f"{top}wte", f"{top}ln_f", f"{top}ff_out")
    names = {
        "attn_norm": "attn_norm",
        "attn.q": "q_proj",
        "attn.k": "k_proj",
        "attn.v": "v_proj",
        "attn.o": "attn_out",
        "mlp_norm": "ff_norm",
        "mlp.gate": "ff_proj",
        "mlp.up": "up_proj",
        "mlp.down": "ff_out",
    }
    for layer in range(arch.layers):
        for mine, theirs in names.items():
            source = f"{top}blocks.{layer}.{theirs}"
            yield Target(f"layers.{layer}.{mine}.weight"), TensorSource(f"{source}.weight")
            if arch.qkv_bias and mine in ("attn.q", "attn.k", "attn.v"):
                yield Target(f"layers.{layer}.{mine}.bias"), TensorSource(f"{source}.bias")
