"""LLaDA-MoE and LLaDA2: mixtures of experts."""

from __future__ import annotations

from unmask.models.architecture import Architecture, Experts
from unmask.models.config import LAYERS, Config
from unmask.models.denoiser import MOST_BLOCK
from unmask.models.family import Target, Tensors, TensorSource
from unmask.models.readers.common import norm_and_mlp_tensors, outer_tensors
from unmask.models.readers.qwen import read_qwen


def read_llada_moe(c: Config) -> Architecture:
    c.refuse(attention_bias=False, clip_qkv=None, moe_router_score_function="softmax")
    for key in ("router_num_group", "router_topk_group"):
        if c.get(key) != -2:  # LLaDA-MoE's own class writes -2 where there are no groups
            c.refuse(**{key: None})
    layers = c.layers("num_hidden_layers")
    pattern = c.get("moe_layer_freq", [1] * layers)
    if not isinstance(pattern, list):
        every = c.whole("moe_layer_freq")
        pattern = [int(layer % every == 0) for layer in range(layers)]
    if len(pattern) < layers:
        raise c.wrong("moe_layer_freq", pattern, f"one number for each of {layers} layers")
    dense = frozenset(i for i, has in enumerate(pattern[:layers]) if not has)
    experts = Experts(
        count=c.whole("num_experts", most=LAYERS),
        top_k=_top_k(c),
        width=c.whole("expert_intermediate_size"),
        shared_width=c.whole("shared_expert_intermediate_size", 0, least=0),
        bias=c.flag("moe_router_enable_expert_bias", False),
        bias_in_weight=True,
    )
    return read_qwen(
        c,
        mlp=c.whole("dense_intermediate_size") if dense else 0,
        norm_eps=c.number("rms_norm_eps", 1e-5),
        qk_norm=c.flag("qk_layernorm", True),
        experts=experts,
        dense_layers=dense,
    )


def _top_k(c: Config) -> int:
    chosen, count = c.whole("num_experts_per_tok"), c.whole("num_experts", most=LAYERS)
    if chosen > count:
        raise c.wrong("num_experts_per_tok", chosen, f"at most num_experts = {count}")
    return chosen


# What LLaDA2's own class takes for keys that a config leaves out.
_LLADA2 = {
    "partial_rotary_factor": 0.5,
    "n_group": 8,
    "topk_group": 4,
    "routed_scaling_factor": 2.5,
    "rms_norm_eps": 1e-5,
}


def read_llada2(c: Config) -> Architecture:
    c = c.with_defaults(**_LLADA2)
    c.refuse(use_qkv_bias=False, use_bias=False, score_function="sigmoid")
    c.refuse(using_split_qkv_in_self_attention=False, norm_head=False)
    width, count = c.whole("moe_intermediate_size"), c.whole("num_experts", most=LAYERS)
    groups, top_groups = c.whole("n_group"), c.whole("topk_group")
    if count % groups or (groups > 1 and count // groups < 2):
        raise c.wrong("n_group", groups, f"such that {count} experts make groups of two or more")
    if top_groups > groups or _top_k(c) > count // groups * top_groups:
        allowed = f"at most n_group = {groups}, and enough for num_experts_per_tok = {_top_k(c)}"
        raise c.wrong("topk_group", top_groups, allowed)
    experts = Experts(
        count=count,
        top_k=_top_k(c),
        width=width,
        shared_width=width * c.whole("num_shared_experts", 0, least=0),
        scoring="sigmoid",
        normalise=True,  # whatever norm_topk_prob says, as in LLaDA2's own code
        scale=c.number("routed_scaling_factor"),
        groups=groups,
        top_groups=top_groups,
        bias=c.flag("moe_router_enable_expert_bias", True),
    )
    return read_qwen(
        c,
        qk_norm=c.flag("use_qk_norm", True),
        experts=experts,
        dense_layers=frozenset(range(c.layers("first_k_dense_replace", 0, least=0))),
        block=c.whole("block_length", 32, most=MOST_BLOCK),
    )


def llada2_tensors(arch: Architecture) -> Tensors:
    yield from outer_tensors(arch, "model.word_embeddings", "model.norm", "lm_head")
    wide, narrow = arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim
    rows = {"q": (0, wide), "k": (wide, wide + narrow), "v": (wide + narrow, wide + 2 * narrow)}
    for layer in range(arch.layers):
        mine, theirs = f"layers.{layer}.", f"model.layers.{layer}."
        for part, span in rows.items():
            fused = f"{theirs}attention.query_key_value.weight"
            source = TensorSource(fused, span, wide + 2 * narrow)
            yield Target(f"{mine}attn.{part}.weight"), source
        yield Target(f"{mine}attn.o.weight"), TensorSource(f"{theirs}attention.dense.weight")
        if arch.qk_norm:
            for part, word in (("q", "query"), ("k", "key")):
                source = TensorSource(f"{theirs}attention.{word}_layernorm.weight")
                yield Target(f"{mine}attn.{part}_norm.weight"), source
        yield from norm_and_mlp_tensors(
            arch, layer, theirs, "mlp.shared_experts.", bias="gate.expert_bias"
        )
