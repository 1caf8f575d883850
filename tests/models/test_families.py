"""The family of a config, and which of its keys are read, rejected or required."""

from __future__ import annotations

import pytest

from tests.models.configs import CONFIGS, FAMILIES, config_of
from tests.models.makers import change_json, make
from unmask import ModelError, UnknownName, UnmaskError, load
from unmask.models.families import Config, family_of


def family(**values):
    return family_of(Config(values, "somewhere/config.json")).name


def read(name, **changes):
    config = Config(config_of(name, **changes), "somewhere/config.json")
    return family_of(config).read(config)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_architecture_names_the_family(name):
    assert family(architectures=CONFIGS[name]["architectures"]) == name


@pytest.mark.parametrize("name", FAMILIES)
def test_the_architecture_comes_before_the_model_type(name):
    for other in FAMILIES:
        values = {"model_type": CONFIGS[other]["model_type"]}
        assert family(architectures=CONFIGS[name]["architectures"], **values) == name


@pytest.mark.parametrize("name", FAMILIES)
def test_without_an_architecture_the_model_type_names_the_family(name):
    assert family(**config_of(name, architectures=...)) == name


@pytest.mark.parametrize("nothing", [None, []])
def test_an_empty_list_of_architectures_is_none(nothing):
    assert family(**config_of("dream", architectures=nothing)) == "dream"


def test_the_type_llada_is_dense_or_has_experts():
    assert family(model_type="llada", d_model=8) == "llada"
    assert family(model_type="llada", num_experts=8) == "llada-moe"


def test_an_unknown_architecture_suggests_the_nearest():
    with pytest.raises(UnknownName) as caught:
        family(architectures=["LLaDAModelML"], model_type="llada")
    message = str(caught.value)
    assert message.startswith("unknown architecture in somewhere/config.json 'LLaDAModelML'")
    assert "did you mean 'LLaDAModelLM'?" in message
    assert "SDARForCausalLM" in message
    assert "\n" not in message


def test_an_unknown_model_type_is_named():
    with pytest.raises(UnmaskError, match=r"config\.json.*'gpt3'"):
        family(model_type="gpt3")


def test_a_config_without_any_name_says_which_keys_it_lacks():
    with pytest.raises(
        ModelError, match=r"somewhere/config\.json has neither 'architectures' nor 'model_type'"
    ):
        family(d_model=3)


NEEDED = {
    "llada": ["d_model", "n_heads", "n_layers"],
    "dream": [
        "hidden_size",
        "num_attention_heads",
        "num_hidden_layers",
        "vocab_size",
        "rope_theta",
        "intermediate_size",
    ],
    "llada-moe": [
        "hidden_size",
        "num_hidden_layers",
        "num_experts",
        "num_experts_per_tok",
        "expert_intermediate_size",
    ],
    "llada2": [
        "moe_intermediate_size",
        "num_experts",
        "num_experts_per_tok",
        "rope_theta",
        "intermediate_size",
    ],
    "sdar": ["hidden_size", "num_attention_heads", "vocab_size", "intermediate_size"],
}


@pytest.mark.parametrize(("name", "key"), [(n, key) for n, keys in NEEDED.items() for key in keys])
@pytest.mark.parametrize("absent", [..., None], ids=["missing", "null"])
def test_a_needed_key_is_named_with_its_file(tmp_path, name, key, absent):
    folder = make(tmp_path, name)
    change_json(folder / "config.json", **{key: absent})
    with pytest.raises(ModelError) as caught:
        load(folder)
    message = str(caught.value)
    assert message.startswith(f"{folder / 'config.json'}: the key {key!r} is missing")
    assert "\n" not in message


def test_a_dense_layer_among_experts_needs_its_size():
    with pytest.raises(ModelError, match="the key 'dense_intermediate_size' is missing"):
        read("llada-moe", moe_layer_freq=[0, 1], dense_intermediate_size=...)


def test_no_dense_layer_needs_no_dense_size():
    assert not read("llada-moe", dense_intermediate_size=...).dense_layers
    assert not read("llada2", first_k_dense_replace=0, intermediate_size=...).dense_layers


def test_a_config_with_neither_vocabulary_key_names_one():
    with pytest.raises(ModelError, match="the key 'vocab_size' is missing"):
        read("llada", vocab_size=..., embedding_size=...)


UNSUPPORTED = [
    ("llada", "block_type", "sequential"),
    ("llada", "layer_norm_type", "default"),
    ("llada", "activation_type", "swiglu"),
    ("llada", "rope", False),
    ("llada", "alibi", True),
    ("llada", "attention_layer_norm", True),
    ("llada", "input_emb_norm", True),
    ("llada", "scale_logits", True),
    ("llada", "include_bias", True),
    ("llada", "bias_for_layer_norm", True),
    ("llada", "block_group_size", 2),
    ("dream", "hidden_act", "gelu"),
    ("dream", "use_sliding_window", True),
    ("dream", "rope_scaling", {"type": "yarn", "factor": 4.0}),
    ("sdar", "attention_bias", True),
    ("llada-moe", "clip_qkv", 8.0),
    ("llada-moe", "moe_router_score_function", "sigmoid"),
    ("llada-moe", "router_num_group", 4),
    ("llada2", "score_function", "softmax"),
    ("llada2", "use_qkv_bias", True),
    ("llada2", "use_bias", True),
    ("llada2", "using_split_qkv_in_self_attention", True),
]


@pytest.mark.parametrize(("name", "key", "value"), UNSUPPORTED)
def test_an_unsupported_value_is_refused_by_file_key_and_value(tmp_path, name, key, value):
    folder = make(tmp_path, name)
    change_json(folder / "config.json", **{key: value})
    with pytest.raises(ModelError) as caught:
        load(folder)
    message = str(caught.value)
    assert message.startswith(f"{folder / 'config.json'}: {key} is {value!r}; only ")
    assert CONFIGS[name]["architectures"][0] in message
    assert "\n" not in message


IMPOSSIBLE = [
    ("llada", "architectures", 3),
    ("llada", "d_model", "32"),
    ("llada", "n_heads", 0),
    ("llada", "n_layers", 1.5),
    ("llada", "mask_token_id", "273"),
    ("llada", "eos_token_id", "end"),
    ("llada", "rope_theta", "500000"),
    ("llada", "n_layers", 10**6),
    ("dream", "vocab_size", 10**12),
    ("llada", "d_model", 2**40),
    ("llada", "rope_theta", float("inf")),
    ("llada", "rope_theta", 10**400),
    ("llada", "rms_norm_eps", 1e300),
    ("llada", "weight_tying", "no"),
    ("llada2", "num_experts", 10**6),
    ("llada2", "first_k_dense_replace", 10**9),
    ("dream", "hidden_size", -32),
    ("dream", "rms_norm_eps", "small"),
    ("sdar", "num_key_value_heads", 0),
    ("sdar", "block_size", 0),
    ("llada-moe", "num_experts_per_tok", 9),  # of 8
    ("llada-moe", "moe_layer_freq", 0),
    ("llada2", "n_group", 3),  # of 16 experts
    ("llada2", "topk_group", 5),  # of 4 groups
    ("llada2", "partial_rotary_factor", 1.5),
]


@pytest.mark.parametrize(("name", "key", "value"), IMPOSSIBLE)
def test_a_value_that_cannot_be_is_refused_by_file_and_key(tmp_path, name, key, value):
    folder = make(tmp_path, name)
    change_json(folder / "config.json", **{key: value})
    with pytest.raises(UnmaskError) as caught:
        load(folder)
    message = str(caught.value)
    assert str(folder / "config.json") in message
    assert key in message
    assert "\n" not in message


def test_rope_parameters_of_another_kind_are_refused():
    rope = {"rope_theta": 1e4, "rope_type": "yarn"}
    with pytest.raises(ModelError, match=r"config\.json: rope_parameters is .*'yarn'.*only the"):
        read("dream", rope_parameters=rope)


def test_the_rope_parameters_of_transformers_5_are_read():
    rope = {"rope_theta": 777.0, "rope_type": "default"}
    assert read("sdar", rope_theta=..., rope_parameters=rope).rope_theta == 777.0


def test_embeddings_may_have_more_rows_than_the_vocabulary():
    assert read("llada", vocab_size=270, embedding_size=280).vocab_size == 280
    assert read("llada", vocab_size=270, embedding_size=None).vocab_size == 270


def test_one_key_head_for_all_is_spelled_multi_query():
    assert read("llada", n_kv_heads=None, multi_query_attention=True).kv_heads == 1
    assert read("llada", n_kv_heads=None, multi_query_attention=None).kv_heads == 4


def test_head_size_divides_the_hidden_size_unless_the_config_or_qwen3_gives_another():
    assert read("dream", head_dim=...).head_dim == 8
    assert read("sdar", head_dim=...).head_dim == 128
    assert read("sdar", head_dim=20).head_dim == 20


def test_keys_that_a_llada2_config_leaves_out_have_the_values_of_its_own_class():
    left_out = dict.fromkeys(("partial_rotary_factor", "n_group", "topk_group"), ...)
    left_out |= dict.fromkeys(("routed_scaling_factor", "rms_norm_eps"), ...)
    arch = read("llada2", **left_out)
    assert (arch.rotary_dim, arch.head_dim, arch.norm_eps) == (4, 8, 1e-5)
    assert (arch.experts.groups, arch.experts.top_groups, arch.experts.scale) == (8, 4, 2.5)


def test_only_dream_is_shifted():
    assert [name for name in FAMILIES if read(name).shift] == ["dream"]


def test_blocks_belong_to_llada2_and_sdar():
    assert {name: read(name).block for name in FAMILIES} == {
        "llada": None,
        "dream": None,
        "llada-moe": None,
        "llada2": 32,
        "sdar": 4,
    }


@pytest.mark.parametrize(("every", "dense"), [(1, set()), (2, {1, 3}), (3, {1, 2})])
def test_experts_every_so_many_layers(every, dense):
    assert read("llada-moe", num_hidden_layers=4, moe_layer_freq=every).dense_layers == dense
