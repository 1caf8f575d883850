"""Families with the config keys and tensor names of Qwen2 and Qwen3."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from unmask.models.architecture import Architecture
from unmask.models.config import Config
from unmask.models.denoiser import MOST_BLOCK
from unmask.models.family import Target, Tensors, TensorSource
from unmask.models.readers.common import (
    check_even,
    check_heads,
    norm_and_mlp_tensors,
    outer_tensors,
)


def read_qwen(c: Config, **more: Any) -> Architecture:
    """Read a config with the key names of transformers' Llama and Qwen; `more` overrides fields."""
    c.refuse(hidden_act="silu", use_sliding_window=False)
    hidden, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    kv_heads = c.whole("num_key_value_heads", heads)
    width = heads if c.get("head_dim") else hidden  # head_dim * heads may differ from hidden
    keys = ("hidden_size", "num_attention_heads", "num_key_value_heads")
    check_heads(c, width, heads, kv_heads, keys)
    head_dim = c.whole("head_dim", hidden // heads)
    rotary_dim = c.rotary_dim(head_dim)
    check_even(c, rotary_dim, keys)
    if "mlp" not in more:
        dense = more.get("experts") is None or more.get("dense_layers")
        more["mlp"] = c.whole("intermediate_size") if dense else 0
    fields: dict[str, Any] = {
        "vocab_size": c.whole("vocab_size"),
        "hidden": hidden,
        "layers": c.layers("num_hidden_layers"),
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "norm_eps": c.number("rms_norm_eps", 1e-6),
        "rope_theta": c.rope_theta(),
        "rotary_dim": rotary_dim,
        "tied": c.flag("tie_word_embeddings", False),
    }
    return Architecture(**{**fields, **more})


def qwen_tensors(arch: Architecture) -> Tensors:
    yield from outer_tensors(arch, "model.embed_tokens", "model.norm", "lm_head")
    for layer in range(arch.layers):
        mine, theirs = f"layers.{layer}.", f"model.layers.{layer}."
        for part in "qkvo":
            source = f"{theirs}self_attn.{part}_proj"
            yield Target(f"{mine}attn.{part}.weight"), TensorSource(f"{source}.weight")
            if arch.qkv_bias and part != "o":
                yield Target(f"{mine}attn.{part}.bias"), TensorSource(f"{source}.bias")
        if arch.qk_norm:
            for part in "qk":
                source = f"{theirs}self_attn.{part}_norm.weight"
                yield Target(f"{mine}attn.{part}_norm.weight"), TensorSource(source)
        yield from norm_and_mlp_tensors(arch, layer, theirs, "shared_expert.", bias="expert_bias")


def read_dream(c: Config) -> Architecture:
    return replace(read_a2d_qwen2(c), shift=True)


def read_sdar(c: Config) -> Architecture:
    return replace(read_a2d_qwen3(c), block=c.whole("block_size", 4, most=MOST_BLOCK))


def read_a2d_qwen3(c: Config) -> Architecture:
    c.refuse(attention_bias=False)
    return read_qwen(c.with_defaults(head_dim=128), qk_norm=True)


def read_a2d_qwen3_blocks(c: Config, block: int) -> Architecture:
    """Attention in blocks that count from the prompt's end; no file holds their width."""
    return replace(read_a2d_qwen3(c), block=block, from_prompt_end=True)


def read_a2d_qwen2(c: Config) -> Architecture:
    """Qwen2 has biases of queries, keys and values, whatever attention_bias says."""
    return read_qwen(c, qkv_bias=True)


def read_a2d_qwen2_blocks(c: Config, block: int) -> Architecture:
    """Attention in blocks, as `read_a2d_qwen3_blocks`."""
    return replace(read_a2d_qwen2(c), block=block, from_prompt_end=True)


def read_fast_dllm(c: Config) -> Architecture:
    return replace(read_a2d_qwen2(c), shift=True, block=c.whole("bd_size", 32, most=MOST_BLOCK))
