"""Configs of the five families and the tensors of their released checkpoints, by hand.

Names and shapes are written out here, not taken from the package.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

FAMILIES = ("llada", "dream", "llada-moe", "llada2", "sdar")
EOS, BOS, TURN, MASK = 270, 271, 272, 273  # of the tokenizer; its largest id is MASK
VOCABULARY = 280  # rows of the embedding; the last few have no token

_LLADA = {
    "architectures": ["LLaDAModelLM"],
    "model_type": "llada",
    "activation_type": "silu",
    "block_type": "llama",
    "block_group_size": 1,
    "layer_norm_type": "rms",
    "rope": True,
    "rope_full_precision": True,
    "alibi": False,
    "include_bias": False,
    "include_qkv_bias": False,
    "weight_tying": False,
    "d_model": 32,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 4,
    "mlp_hidden_size": 40,
    "mlp_ratio": 4,
    "vocab_size": VOCABULARY,
    "embedding_size": VOCABULARY,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "mask_token_id": MASK,
    "eos_token_id": EOS,
    "pad_token_id": EOS,
}
_QWEN = {
    "hidden_act": "silu",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "rms_norm_eps": 1e-6,
    "rope_scaling": None,
    "tie_word_embeddings": False,
    "vocab_size": VOCABULARY,
    "pad_token_id": EOS,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "llada": _LLADA,
    "dream": _QWEN
    | {
        "architectures": ["DreamModel"],
        "model_type": "Dream",
        "intermediate_size": 40,
        "num_key_value_heads": 2,
        "rope_theta": 1000000.0,
        "torch_dtype": "bfloat16",
        "use_sliding_window": False,
        "eos_token_id": EOS,
        "mask_token_id": MASK,
    },
    "llada-moe": _QWEN
    | {
        "architectures": ["LLaDAMoEModelLM"],
        "model_type": "llada",
        "num_key_value_heads": 4,
        "rms_norm_eps": 1e-5,
        "rope_theta": 50000,
        "partial_rotary_factor": 1,
        "attention_bias": False,
        "clip_qkv": None,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "expert_intermediate_size": 12,
        "dense_intermediate_size": 40,
        "shared_expert_intermediate_size": None,
        "moe_layer_freq": [1, 1],
        "moe_router_enable_expert_bias": False,
        "moe_router_score_function": "softmax",
        "norm_topk_prob": None,
        "routed_scaling_factor": 1,
        "qk_layernorm": True,
        "torch_dtype": "bfloat16",
        "eos_token_id": EOS,
    },
    "llada2": _QWEN
    | {
        "architectures": ["LLaDA2MoeModelLM"],
        "model_type": "llada2_moe",
        "head_dim": 8,
        "num_key_value_heads": 2,
        "intermediate_size": 40,
        "first_k_dense_replace": 1,
        "moe_intermediate_size": 12,
        "num_experts": 16,
        "num_experts_per_tok": 4,
        "num_shared_experts": 1,
        "n_group": 4,
        "topk_group": 2,
        "score_function": "sigmoid",
        "norm_topk_prob": True,
        "routed_scaling_factor": 2.5,
        "moe_router_enable_expert_bias": True,
        "partial_rotary_factor": 0.5,
        "rope_theta": 600000,
        "use_qk_norm": True,
        "use_qkv_bias": False,
        "use_bias": False,
        "dtype": "bfloat16",
    },
    "sdar": _QWEN
    | {
        "architectures": ["SDARForCausalLM"],
        "model_type": "sdar",
        "head_dim": 12,
        "intermediate_size": 40,
        "num_key_value_heads": 2,
        "rope_theta": 1000000,
        "attention_bias": False,
        "block_size": 4,
        "torch_dtype": "bfloat16",
        "eos_token_id": EOS,
        "mask_token_id": MASK,
    },
}

Shapes = Iterator[tuple[str, tuple[int, ...]]]


def config_of(family: str, **changes: Any) -> dict[str, Any]:
    """A family's config.json with some keys changed; a value of `...` removes the key."""
    config = CONFIGS[family] | changes
    return {key: value for key, value in config.items() if value is not ...}


def tensor_shapes(family: str, config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Every tensor of a checkpoint with this config."""
    makers = {"llada": _llada_shapes, "llada2": _llada2_shapes}
    return dict(makers.get(family, _qwen_shapes)(family, config))


def _llada_shapes(family: str, c: dict[str, Any]) -> Shapes:
    wide, vocabulary = c["d_model"], c.get("embedding_size") or c["vocab_size"]
    size = wide // c["n_heads"]
    narrow = size * (c.get("n_kv_heads") or c["n_heads"])
    mlp = c.get("mlp_hidden_size") or int(c["mlp_ratio"] * wide)
    yield "model.transformer.wte.weight", (vocabulary, wide)
    yield "model.transformer.ln_f.weight", (wide,)
    if not c["weight_tying"]:
        yield "model.transformer.ff_out.weight", (vocabulary, wide)
    for i in range(c["n_layers"]):
        block = f"model.transformer.blocks.{i}."
        yield f"{block}attn_norm.weight", (wide,)
        yield f"{block}q_proj.weight", (wide, wide)
        yield f"{block}k_proj.weight", (narrow, wide)
        yield f"{block}v_proj.weight", (narrow, wide)
        yield f"{block}attn_out.weight", (wide, wide)
        yield f"{block}ff_norm.weight", (wide,)
        yield f"{block}ff_proj.weight", (mlp, wide)
        yield f"{block}up_proj.weight", (mlp, wide)
        yield f"{block}ff_out.weight", (wide, mlp)
        if c.get("include_qkv_bias"):
            yield f"{block}q_proj.bias", (wide,)
            yield f"{block}k_proj.bias", (narrow,)
            yield f"{block}v_proj.bias", (narrow,)


def _heads(c: dict[str, Any]) -> tuple[int, int, int]:
    """Rows of the queries, rows of the keys, size of a head."""
    size = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
    kv_heads = c.get("num_key_value_heads") or c["num_attention_heads"]
    return size * c["num_attention_heads"], size * kv_heads, size


def _gated(prefix: str, width: int, hidden: int) -> Shapes:
    yield f"{prefix}gate_proj.weight", (width, hidden)
    yield f"{prefix}up_proj.weight", (width, hidden)
    yield f"{prefix}down_proj.weight", (hidden, width)


def _qwen_shapes(family: str, c: dict[str, Any]) -> Shapes:
    hidden, (wide, narrow, size) = c["hidden_size"], _heads(c)
    yield "model.embed_tokens.weight", (c["vocab_size"], hidden)
    yield "model.norm.weight", (hidden,)
    if not c.get("tie_word_embeddings"):
        yield "lm_head.weight", (c["vocab_size"], hidden)
    normed = family == "sdar" or (family == "llada-moe" and c.get("qk_layernorm", True))
    for i in range(c["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        yield f"{layer}input_layernorm.weight", (hidden,)
        yield f"{layer}post_attention_layernorm.weight", (hidden,)
        yield f"{layer}self_attn.q_proj.weight", (wide, hidden)
        yield f"{layer}self_attn.k_proj.weight", (narrow, hidden)
        yield f"{layer}self_attn.v_proj.weight", (narrow, hidden)
        yield f"{layer}self_attn.o_proj.weight", (hidden, wide)
        if family == "dream":
            yield f"{layer}self_attn.q_proj.bias", (wide,)
            yield f"{layer}self_attn.k_proj.bias", (narrow,)
            yield f"{layer}self_attn.v_proj.bias", (narrow,)
        if normed:
            yield f"{layer}self_attn.q_norm.weight", (size,)
            yield f"{layer}self_attn.k_norm.weight", (size,)
        if family != "llada-moe":
            yield from _gated(f"{layer}mlp.", c["intermediate_size"], hidden)
        elif not c["moe_layer_freq"][i]:
            yield from _gated(f"{layer}mlp.", c["dense_intermediate_size"], hidden)
        else:
            yield f"{layer}mlp.gate.weight", (c["num_experts"], hidden)
            if c.get("moe_router_enable_expert_bias"):
                yield f"{layer}mlp.expert_bias", (c["num_experts"],)
            for e in range(c["num_experts"]):
                width = c["expert_intermediate_size"]
                yield from _gated(f"{layer}mlp.experts.{e}.", width, hidden)
            if c.get("shared_expert_intermediate_size"):
                width = c["shared_expert_intermediate_size"]
                yield from _gated(f"{layer}shared_expert.", width, hidden)


def _llada2_shapes(family: str, c: dict[str, Any]) -> Shapes:
    hidden, (wide, narrow, size) = c["hidden_size"], _heads(c)
    yield "model.word_embeddings.weight", (c["vocab_size"], hidden)
    yield "model.norm.weight", (hidden,)
    if not c.get("tie_word_embeddings"):
        yield "lm_head.weight", (c["vocab_size"], hidden)
    for i in range(c["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        yield f"{layer}input_layernorm.weight", (hidden,)
        yield f"{layer}post_attention_layernorm.weight", (hidden,)
        yield f"{layer}attention.query_key_value.weight", (wide + 2 * narrow, hidden)
        yield f"{layer}attention.dense.weight", (hidden, wide)
        if c.get("use_qk_norm", True):
            yield f"{layer}attention.query_layernorm.weight", (size,)
            yield f"{layer}attention.key_layernorm.weight", (size,)
        if i < c.get("first_k_dense_replace", 0):
            yield from _gated(f"{layer}mlp.", c["intermediate_size"], hidden)
            continue
        width = c["moe_intermediate_size"]
        yield f"{layer}mlp.gate.weight", (c["num_experts"], hidden)
        if c.get("moe_router_enable_expert_bias", True):
            yield f"{layer}mlp.gate.expert_bias", (c["num_experts"],)
        for e in range(c["num_experts"]):
            yield from _gated(f"{layer}mlp.experts.{e}.", width, hidden)
        if c.get("num_shared_experts"):
            shared = width * c["num_shared_experts"]
            yield from _gated(f"{layer}mlp.shared_experts.", shared, hidden)
