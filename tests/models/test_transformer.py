"""Logits of every family, config by config, against plain loops in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import canvas_of, logits_of
from tests.models.configs import FAMILIES, MASK, VOCABULARY, config_of
from tests.models.makers import make, random_tensors, write_weights
from tests.models.reference import Reference
from unmask import load
from unmask.models.transformer import block_causal

IDS = [5, 17, 200, MASK, 9, MASK, 33, 256, 4, MASK, 71]
TOLERANCE = 1e-4
SPLIT = {"rope_theta": ..., "rope_parameters": {"rope_theta": 20000.0, "rope_type": "default"}}

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("llada", {}),
    ("llada", {"n_kv_heads": None}),
    ("llada", {"n_kv_heads": 2}),
    ("llada", {"n_kv_heads": 1}),
    ("llada", {"mlp_hidden_size": None, "mlp_ratio": 2}),
    ("llada", {"mlp_hidden_size": None, "mlp_ratio": 2.5}),
    ("llada", {"weight_tying": True}),
    ("llada", {"vocab_size": 274}),
    ("llada", {"embedding_size": None}),
    ("llada", {"include_qkv_bias": True, "n_kv_heads": 2}),
    ("llada", {"rope_theta": 100.0, "rms_norm_eps": 0.1}),
    ("llada", {"n_layers": 1, "n_heads": 8}),
    ("llada", SPLIT),
    ("dream", {}),
    ("dream", {"num_key_value_heads": None}),
    ("dream", {"num_key_value_heads": 4}),
    ("dream", {"tie_word_embeddings": True}),
    ("dream", {"head_dim": 12}),
    ("dream", {"attention_bias": False}),  # not used
    ("dream", {"rope_scaling": {"rope_type": "default"}}),
    ("dream", SPLIT | {"torch_dtype": ..., "dtype": "bfloat16"}),
    ("dream", {"rope_theta": 100.0, "rms_norm_eps": 0.1}),
    ("llada-moe", {}),
    ("llada-moe", {"moe_layer_freq": [0, 1]}),
    ("llada-moe", {"moe_layer_freq": [1, 0]}),
    ("llada-moe", {"shared_expert_intermediate_size": 20}),
    ("llada-moe", {"shared_expert_intermediate_size": 20, "moe_layer_freq": [0, 1]}),
    ("llada-moe", {"qk_layernorm": False}),
    ("llada-moe", {"num_key_value_heads": 2, "num_experts_per_tok": 1}),
    ("llada-moe", {"moe_router_enable_expert_bias": True}),
    ("llada-moe", {"norm_topk_prob": True, "routed_scaling_factor": 2.5}),  # neither is used
    ("llada-moe", {"router_num_group": -2, "router_topk_group": -2}),
    ("llada-moe", {"partial_rotary_factor": 0.5}),
    ("llada-moe", {"tie_word_embeddings": True}),
    ("llada-moe", SPLIT | {"torch_dtype": ..., "dtype": "bfloat16"}),
    ("llada2", {}),
    ("llada2", {"first_k_dense_replace": 0}),
    ("llada2", {"first_k_dense_replace": 2}),
    ("llada2", {"num_shared_experts": 0}),
    ("llada2", {"num_shared_experts": None}),
    ("llada2", {"num_shared_experts": 2}),
    ("llada2", {"n_group": 1, "topk_group": 1}),
    ("llada2", {"n_group": 8, "topk_group": 2}),
    ("llada2", {"norm_topk_prob": False}),  # not used
    ("llada2", {"head_dim": ...}),
    ("llada2", {"head_dim": 12}),
    ("llada2", {"use_qk_norm": False}),
    ("llada2", {"use_qk_norm": ...}),
    ("llada2", {"moe_router_enable_expert_bias": False}),
    ("llada2", {"tie_word_embeddings": True}),
    ("llada2", {"partial_rotary_factor": 1.0}),
    ("llada2", SPLIT),
    ("sdar", {}),
    ("sdar", {"block_size": 8}),
    ("sdar", {"num_key_value_heads": 4}),
    ("sdar", {"tie_word_embeddings": True}),
    ("sdar", SPLIT | {"torch_dtype": ..., "dtype": "bfloat16"}),
]


def said(model, ids=IDS):
    """The model's own output at every position, before any shift: [L, V]."""
    block = model.spec.block
    place = torch.arange(len(ids))[None]
    mask = None if block is None else block_causal(place, place, block)[:, None]
    with torch.no_grad():
        return model.module.logits(model.module(torch.tensor([ids]), mask=mask))[0]


def close(actual, wanted):
    torch.testing.assert_close(actual.double(), wanted, atol=TOLERANCE, rtol=0)


def _named(value):
    if isinstance(value, dict):
        return ",".join(f"{k}={'none' if v is ... else v}" for k, v in value.items()) or "plain"
    return str(value)


@pytest.mark.parametrize(("family", "changes"), VARIANTS, ids=_named)
def test_a_config_means_what_the_original_code_makes_of_it(tmp_path, family, changes):
    config = config_of(family, **changes)
    model = load(make(tmp_path, family, **changes)).model
    close(said(model), Reference(family, config, random_tensors(family, config)).logits(IDS))


def test_llada2_turns_half_of_a_head_also_if_only_the_rope_parameters_say_so(tmp_path):
    rope = {"rope_theta": 20000.0, "rope_type": "default", "partial_rotary_factor": 0.5}
    changes = {"rope_theta": ..., "partial_rotary_factor": ..., "rope_parameters": rope}
    config = config_of("llada2", **changes)
    model = load(make(tmp_path, "llada2", **changes)).model
    close(said(model), Reference("llada2", config, random_tensors("llada2", config)).logits(IDS))


HEADS = st.sampled_from([(2, 1), (2, 2), (4, 1), (4, 2), (6, 3), (6, 2)])
CHANGES = {
    "llada": st.builds(
        lambda heads, size, mlp, ratio, bias, tied, layers: {
            "n_heads": heads[0],
            "n_kv_heads": heads[1],
            "d_model": heads[0] * size,
            "mlp_hidden_size": mlp,
            "mlp_ratio": ratio,
            "include_qkv_bias": bias,
            "weight_tying": tied,
            "n_layers": layers,
        },
        HEADS,
        st.sampled_from([4, 6, 8]),
        st.sampled_from([None, 24, 50]),
        st.integers(1, 3),
        st.booleans(),
        st.booleans(),
        st.integers(1, 3),
    ),
    "llada-moe": st.builds(
        lambda heads, size, experts, top, shared, pattern, norm: {
            "num_attention_heads": heads[0],
            "num_key_value_heads": heads[1],
            "hidden_size": heads[0] * size,
            "num_experts": experts,
            "num_experts_per_tok": top,
            "shared_expert_intermediate_size": shared,
            "moe_layer_freq": pattern,
            "num_hidden_layers": len(pattern),
            "qk_layernorm": norm,
        },
        HEADS,
        st.sampled_from([4, 8]),
        st.integers(3, 8),
        st.integers(1, 3),
        st.sampled_from([None, 10]),
        st.lists(st.integers(0, 1), min_size=1, max_size=3),
        st.booleans(),
    ),
    "llada2": st.builds(
        lambda heads, size, groups, each, top, shared, dense, rotary: {
            "num_attention_heads": heads[0],
            "num_key_value_heads": heads[1],
            "head_dim": size,
            "n_group": groups,
            "topk_group": min(2, groups),
            "num_experts": groups * each,
            "num_experts_per_tok": top,
            "num_shared_experts": shared,
            "first_k_dense_replace": dense,
            "partial_rotary_factor": rotary,
        },
        HEADS,
        st.sampled_from([4, 8, 12]),
        st.integers(1, 4),
        st.integers(3, 5),
        st.integers(2, 3),
        st.sampled_from([None, 1, 2]),
        st.integers(0, 2),
        st.sampled_from([0.5, 1.0]),
    ),
    "sdar": st.builds(
        lambda heads, hidden, size, block, tied: {
            "num_attention_heads": heads[0],
            "num_key_value_heads": heads[1],
            "hidden_size": hidden,
            "head_dim": size,
            "block_size": block,
            "tie_word_embeddings": tied,
        },
        HEADS,
        st.sampled_from([16, 30, 36]),
        st.sampled_from([4, 10]),
        st.sampled_from([2, 4, 5, 16]),
        st.booleans(),
    ),
    "dream": st.builds(
        lambda heads, size, mlp, tied, theta: {
            "num_attention_heads": heads[0],
            "num_key_value_heads": heads[1],
            "hidden_size": heads[0] * size,
            "intermediate_size": mlp,
            "tie_word_embeddings": tied,
            "rope_theta": theta,
        },
        HEADS,
        st.sampled_from([4, 6, 8]),
        st.integers(5, 50),
        st.booleans(),
        st.sampled_from([100.0, 1e4, 1e6]),
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=8)
@given(data=st.data(), seed=st.integers(0, 2**16), shards=st.integers(1, 3))
def test_any_config_is_read_as_the_original_code_would(
    tmp_path_factory, family, data, seed, shards
):
    changes = data.draw(CHANGES[family])
    ids = data.draw(st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=9))
    config = config_of(family, **changes)
    folder = make(tmp_path_factory.mktemp("any"), family, seed=seed, shards=shards, **changes)
    wanted = Reference(family, config, random_tensors(family, config, seed)).logits(ids)
    close(said(load(folder).model, ids), wanted)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_in_shards_is_the_model_in_one_file(tmp_path, family):
    one = load(make(tmp_path / "one", family)).model
    many = load(make(tmp_path / "many", family, shards=3)).model
    assert torch.equal(said(one), said(many))


@pytest.mark.parametrize("family", FAMILIES)
def test_tensor_names_may_lack_the_leading_model(tmp_path, family):
    folder = make(tmp_path, family)
    wanted = said(load(folder).model)
    tensors = random_tensors(family, config_of(family))
    write_weights(folder, {name.removeprefix("model."): t for name, t in tensors.items()})
    assert torch.equal(said(load(folder).model), wanted)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_head_is_asked_for_single_cells(tmp_path, family):
    model = load(make(tmp_path, family)).model
    canvas = canvas_of(IDS, mask=MASK)
    with torch.no_grad():
        actual = logits_of(model, canvas)[0]
    wanted = said(model)
    if family == "dream":  # token i is read from the output at i - 1
        wanted = torch.cat([wanted[:1], wanted[:-1]])
    torch.testing.assert_close(actual, wanted, atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_on_the_right_changes_nothing(tmp_path, family):
    model = load(make(tmp_path, family)).model
    short = IDS[:8]
    with torch.no_grad():
        together = logits_of(model, canvas_of(short, [*IDS, 7], mask=MASK))[0, : len(short)]
        alone = logits_of(model, canvas_of(short, mask=MASK))[0]
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)  # products round by shape


def test_a_block_causal_model_sees_its_own_block_and_those_before(tmp_path):
    model = load(make(tmp_path, "sdar")).model  # blocks of 4
    before = said(model)
    changed = [*IDS[:5], 99, *IDS[6:]]
    moved = (said(model, changed) - before).abs().amax(-1) > 1e-6
    assert moved.tolist() == [False] * 4 + [True] * 7


def test_a_full_attention_model_sees_everything(tmp_path):
    model = load(make(tmp_path, "llada")).model
    moved = (said(model, [*IDS[:-1], 99]) - said(model)).abs().amax(-1) > 1e-6
    assert moved.all()


def test_the_block_mask_counts_blocks_from_position_zero():
    place = torch.arange(6)[None]
    assert block_causal(place, place, 2)[0].int().tolist() == [
        [1, 1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0],
        [1, 1, 1, 1, 0, 0],
        [1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 1, 1],
    ]
