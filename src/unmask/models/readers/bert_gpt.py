"""ModernBERT and GPT-2: config and tensor names."""

from __future__ import annotations

from unmask.errors import ModelError, shown
from unmask.models.architecture import Architecture, LocalAttention
from unmask.models.config import Config
from unmask.models.family import Target, Tensors, TensorSource
from unmask.models.readers.common import check_even, check_heads

KINDS = FULL, LOCAL = "full_attention", "sliding_attention"  # of ModernBERT's layers


def read_modernbert(c: Config) -> Architecture:
    c.refuse(hidden_activation="gelu", classifier_activation="gelu", tie_word_embeddings=True)
    c.refuse(attention_bias=False, mlp_bias=False, norm_bias=False, classifier_bias=False)
    c.refuse(decoder_bias=True)
    hidden, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    keys = ("hidden_size", "num_attention_heads", "")
    check_heads(c, hidden, heads, heads, keys)
    check_even(c, hidden // heads, keys)
    theta, local_theta = _thetas(c)
    return Architecture(
        vocab_size=c.whole("vocab_size"),
        hidden=hidden,
        layers=c.layers("num_hidden_layers"),
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        mlp=c.whole("intermediate_size"),
        norm_eps=c.number("norm_eps", 1e-5),
        rope_theta=theta,
        rotary_dim=hidden // heads,
        tied=True,
        local=LocalAttention(
            reach=c.whole("local_attention", 128) // 2,
            layers=_local_layers(c),
            rope_theta=local_theta,
        ),
    )


def _thetas(c: Config) -> tuple[float, float]:
    """The rotary bases of the global and of the local layers.

    transformers 5 writes them under the kind of the layers. A `local_rope_theta` of null is the
    global base, as in transformers 4; without the key it is 10000.
    """
    for key in c.entry("rope_parameters"):
        if key not in KINDS:
            raise ModelError(
                f"{c.file}: rope_parameters must hold objects under {FULL!r} and {LOCAL!r}, got "
                f"the key {shown(key, 100)}; write it inside them"
            )
    theta = _theta(c, FULL, c.number("global_rope_theta", 160000.0))
    shared = "local_rope_theta" in c.values and c.values["local_rope_theta"] is None
    local_theta = _theta(c, LOCAL, theta if shared else c.number("local_rope_theta", 10000.0))
    scaled = c.theta_of(c.entry("rope_scaling"), "rope_scaling")
    if scaled is not None and (theta, local_theta) != (scaled, scaled):
        raise ModelError(
            f"{c.file}: rope_scaling gives the rotary base {scaled:g}, and the layers have "
            f"{theta:g} and {local_theta:g}; keep those that the model was trained with"
        )
    return theta, local_theta


def _theta(c: Config, kind: str, default: float) -> float:
    """The rotary base under a kind of layers."""
    options = c.entry("rope_parameters").get(kind) or {}
    if not isinstance(options, dict):
        raise c.wrong(f"rope_parameters of {kind}", options, "an object")
    return c.theta_of(options, f"rope_parameters of {kind}") or default


def _local_layers(c: Config) -> frozenset[int]:
    """The layers under `layer_types`; without it, all but the first and every n-th after it."""
    count, every = c.layers("num_hidden_layers"), c.whole("global_attn_every_n_layers", 3)
    kinds = c.get("layer_types", [LOCAL if layer % every else FULL for layer in range(count)])
    if not isinstance(kinds, list) or len(kinds) != count or any(k not in KINDS for k in kinds):
        raise c.wrong("layer_types", kinds, f"{FULL!r} or {LOCAL!r} for each of {count} layers")
    return frozenset(layer for layer, kind in enumerate(kinds) if kind == LOCAL)


def modernbert_tensors(arch: Architecture) -> Tensors:
    def plain(mine: str, theirs: str) -> tuple[Target, TensorSource]:
        return Target(f"{mine}.weight"), TensorSource(f"{theirs}.weight")

    yield plain("embed", "model.embeddings.tok_embeddings")
    yield plain("embed_norm", "model.embeddings.norm")
    yield plain("norm", "model.final_norm")
    yield plain("prediction.dense", "head.dense")
    yield plain("prediction.norm", "head.norm")
    yield Target("prediction.bias"), TensorSource("decoder.bias")
    if not arch.tied:
        yield plain("head", "decoder")
    width = arch.hidden
    for layer in range(arch.layers):
        mine, theirs = f"layers.{layer}.", f"model.layers.{layer}."
        for place, part in enumerate("qkv"):
            rows = (place * width, (place + 1) * width)
            source = TensorSource(f"{theirs}attn.Wqkv.weight", rows, 3 * width)
            yield Target(f"{mine}attn.{part}.weight"), source
        for place, part in enumerate(("gate", "up")):
            rows = (place * arch.mlp, (place + 1) * arch.mlp)
            source = TensorSource(f"{theirs}mlp.Wi.weight", rows, 2 * arch.mlp)
            yield Target(f"{mine}mlp.{part}.weight"), source
        yield plain(f"{mine}attn.o", f"{theirs}attn.Wo")
        yield plain(f"{mine}mlp.down", f"{theirs}mlp.Wo")
        yield plain(f"{mine}mlp_norm", f"{theirs}mlp_norm")
        if layer:  # the first layer has no norm before its attention
            yield plain(f"{mine}attn_norm", f"{theirs}attn_norm")


def read_gpt2(c: Config) -> Architecture:
    c.refuse(activation_function="gelu_new", scale_attn_weights=True, add_cross_attention=False)
    c.refuse(scale_attn_by_inverse_layer_idx=False, tie_word_embeddings=True)
    hidden, heads = c.whole("n_embd"), c.whole("n_head")
    check_heads(c, hidden, heads, heads, ("n_embd", "n_head", ""))
    return Architecture(
        vocab_size=c.whole("vocab_size"),
        hidden=hidden,
        layers=c.layers("n_layer"),
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        mlp=c.whole("n_inner", 4 * hidden),
        norm_eps=c.number("layer_norm_epsilon", 1e-5),
        rope_theta=1.0,
        rotary_dim=0,
        tied=True,
        shift=True,
        positions=c.whole("n_positions", 1024),
    )


def gpt2_tensors(arch: Architecture) -> Tensors:
    """The names of DiffuGPT's wrapper; its linear weights are stored as [in, out]."""
    top = "denoise_model."
    yield Target("embed.weight"), TensorSource("embed_tokens.weight")
    yield Target("places.weight"), TensorSource(f"{top}wpe.weight")
    if not arch.tied:
        yield Target("head.weight"), TensorSource("lm_head.weight")
    names = {"attn_norm": "ln_1", "mlp_norm": "ln_2"}
    linear = {"qkv": "attn.c_attn", "o": "attn.c_proj", "up": "mlp.c_fc", "down": "mlp.c_proj"}
    for kind in ("weight", "bias"):
        yield Target(f"norm.{kind}"), TensorSource(f"{top}ln_f.{kind}")
        for layer in range(arch.layers):
            mine, theirs = f"layers.{layer}.", f"{top}h.{layer}."
            for name, source in names.items():
                yield Target(f"{mine}{name}.{kind}"), TensorSource(f"{theirs}{source}.{kind}")
            for name, source in linear.items():
                turned = kind == "weight"
                stored = TensorSource(f"{theirs}{source}.{kind}", transposed=turned)
                yield Target(f"{mine}{name}.{kind}"), stored
