"""The families of released checkpoints: how to read their config and name their tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from unmask.errors import ModelError, UnknownName
from unmask.models.architecture import Architecture, Experts
from unmask.models.config import LAYERS, Config


@dataclass(frozen=True)
class TensorSource:
    """A tensor of a checkpoint file, or some of its rows."""

    name: str
    rows: tuple[int, int] | None = None
    height: int | None = None  # rows of the whole tensor, if only some are taken


@dataclass(frozen=True)
class Target:
    """A parameter of the transformer, or one slice of it."""

    name: str
    index: int | None = None


Tensors = Iterator[tuple[Target, TensorSource]]


@dataclass(frozen=True)
class Family:
    """One family: its class names, config reader, tensor names, and defaults that no file holds."""

    name: str
    architectures: tuple[str, ...]
    model_types: tuple[str, ...]
    examples: str
    read: Callable[[Config], Architecture]
    tensors: Callable[[Architecture], Tensors]
    mask_id: int | None = None  # used if neither config nor tokenizer names one
    end_tokens: tuple[str, ...] = ()  # tokens that end a turn, besides EOS


def _read_llada(c: Config) -> Architecture:
    c.refuse(block_type="llama", layer_norm_type="rms", activation_type="silu", rope=True)
    c.refuse(alibi=False, attention_layer_norm=False, input_emb_norm=False, scale_logits=False)
    c.refuse(include_bias=False, bias_for_layer_norm=False, block_group_size=1)
    hidden, heads = c.whole("d_model"), c.whole("n_heads")
    kv_heads = c.whole("n_kv_heads", 1 if c.flag("multi_query_attention", False) else heads)
    _check_heads(c, hidden, heads, kv_heads, ("d_model", "n_heads", "n_kv_heads"))
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


def _check_heads(
    c: Config, hidden: int, heads: int, kv_heads: int, keys: tuple[str, str, str]
) -> None:
    """Raise unless the heads divide the width and the key heads divide the heads."""
    if hidden % heads:
        raise c.wrong(keys[1], heads, f"a divisor of {keys[0]} = {hidden}")
    if heads % kv_heads:
        raise c.wrong(keys[2], kv_heads, f"a divisor of {keys[1]} = {heads}")


def _outer_tensors(arch: Architecture, embed: str, norm: str, head: str) -> Tensors:
    """The embedding first, the last norm, and the head unless it is the embedding."""
    yield Target("embed.weight"), TensorSource(f"{embed}.weight")
    yield Target("norm.weight"), TensorSource(f"{norm}.weight")
    if not arch.tied:
        yield Target("head.weight"), TensorSource(f"{head}.weight")


def _llada_tensors(arch: Architecture) -> Tensors:
    top = "model.transformer."
    yield from _outer_tensors(arch, f"{top}wte", f"{top}ln_f", f"{top}ff_out")
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


def _read_qwen(c: Config, **more: Any) -> Architecture:
    """Read a config with the key names of transformers' Llama and Qwen; `more` overrides fields."""
    c.refuse(hidden_act="silu", use_sliding_window=False)
    hidden, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    kv_heads = c.whole("num_key_value_heads", heads)
    width = heads if c.get("head_dim") else hidden  # head_dim * heads may differ from hidden
    _check_heads(
        c, width, heads, kv_heads, ("hidden_size", "num_attention_heads", "num_key_value_heads")
    )
    head_dim = c.whole("head_dim", hidden // heads)
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
        "rotary_dim": c.rotary_dim(head_dim),
        "tied": c.flag("tie_word_embeddings", False),
    }
    return Architecture(**{**fields, **more})


def _qwen_tensors(arch: Architecture) -> Tensors:
    yield from _outer_tensors(arch, "model.embed_tokens", "model.norm", "lm_head")
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
        yield from _norm_and_mlp_tensors(arch, layer, theirs, "shared_expert.")


def _norm_and_mlp_tensors(arch: Architecture, layer: int, theirs: str, shared: str) -> Tensors:
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
        yield Target(f"{mine}mlp.bias"), TensorSource(f"{mlp}gate.expert_bias")
    for part in ("gate", "up", "down"):
        for expert in range(arch.experts.count):
            source = f"{mlp}experts.{expert}.{part}_proj.weight"
            yield Target(f"{mine}mlp.{part}", expert), TensorSource(source)
        if arch.experts.shared_width:
            source = f"{theirs}{shared}{part}_proj.weight"
            yield Target(f"{mine}shared.{part}.weight"), TensorSource(source)


def _read_dream(c: Config) -> Architecture:
    return _read_qwen(c, qkv_bias=c.flag("attention_bias", True), shift=True)


def _read_sdar(c: Config) -> Architecture:
    c.refuse(attention_bias=False)
    return _read_qwen(c, qk_norm=True, block=c.whole("block_size", 4))


def _read_llada_moe(c: Config) -> Architecture:
    c.refuse(attention_bias=False, clip_qkv=None, moe_router_score_function="softmax")
    c.refuse(router_num_group=None, router_topk_group=None)
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
    return _read_qwen(
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


def _read_llada2(c: Config) -> Architecture:
    c.refuse(use_qkv_bias=False, use_bias=False, score_function="sigmoid")
    c.refuse(using_split_qkv_in_self_attention=False, norm_head=False)
    width, count = c.whole("moe_intermediate_size"), c.whole("num_experts", most=LAYERS)
    groups, top_groups = c.whole("n_group", 1), c.whole("topk_group", 1)
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
        normalise=c.flag("norm_topk_prob", True),
        scale=c.number("routed_scaling_factor", 1.0),
        groups=groups,
        top_groups=top_groups,
        bias=c.flag("moe_router_enable_expert_bias", True),
    )
    return _read_qwen(
        c,
        qk_norm=c.flag("use_qk_norm", True),
        experts=experts,
        dense_layers=frozenset(range(c.layers("first_k_dense_replace", 0, least=0))),
        block=c.whole("block_length", 32),
    )


def _llada2_tensors(arch: Architecture) -> Tensors:
    yield from _outer_tensors(arch, "model.word_embeddings", "model.norm", "lm_head")
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
        yield from _norm_and_mlp_tensors(arch, layer, theirs, "mlp.shared_experts.")


FAMILIES: tuple[Family, ...] = (
    Family(
        "llada",
        ("LLaDAModelLM",),
        (),
        "LLaDA-8B-Base, LLaDA-8B-Instruct, LLaDA-1.5, iLLaDA-8B",
        _read_llada,
        _llada_tensors,
        mask_id=126336,
        end_tokens=("<|eot_id|>",),
    ),
    Family(
        "dream",
        ("DreamModel", "DreamForCausalLM"),
        ("Dream", "dream"),
        "Dream-v0-Base-7B, Dream-v0-Instruct-7B, Dream-Coder-v0, DiffuCoder-7B",
        _read_dream,
        _qwen_tensors,
        mask_id=151666,
        end_tokens=("<|im_end|>",),
    ),
    Family(
        "llada-moe",
        ("LLaDAMoEModelLM", "LLaDAMoEModel"),
        (),
        "LLaDA-MoE-7B-A1B-Base, LLaDA-MoE-7B-A1B-Instruct",
        _read_llada_moe,
        _qwen_tensors,
        mask_id=156895,
        end_tokens=("<|role_end|>",),
    ),
    Family(
        "llada2",
        ("LLaDA2MoeModelLM",),
        ("llada2_moe",),
        "LLaDA2.0-mini, LLaDA2.0-flash, LLaDA2.1",
        _read_llada2,
        _llada2_tensors,
        mask_id=156895,
        end_tokens=("<|role_end|>",),
    ),
    Family(
        "sdar",
        ("SDARForCausalLM",),
        ("sdar",),
        "SDAR-1.7B-Chat, SDAR-4B-Chat, SDAR-8B-Chat",
        _read_sdar,
        _qwen_tensors,
        mask_id=151669,
        end_tokens=("<|im_end|>",),
    ),
)


def family_of(config: Config) -> Family:
    """The family of a config, by `architectures`, else by `model_type`.

    Two families have the `model_type` llada, so `architectures` goes first.
    """
    names = config.names
    for family in FAMILIES:
        if any(name in family.architectures for name in names):
            return family
    kind = config.values.get("model_type")
    if not names:
        for family in FAMILIES:
            if kind in family.model_types:
                return family
        if kind == "llada":  # of the two, only the MoE family has num_experts
            wanted = "llada-moe" if "num_experts" in config.values else "llada"
            return next(family for family in FAMILIES if family.name == wanted)
    known = [name for family in FAMILIES for name in family.architectures]
    given = names[0] if names else kind
    if given is None:
        raise ModelError(f"{config.file} has neither 'architectures' nor 'model_type'")
    raise UnknownName(f"architecture in {config.file}", str(given), known)
