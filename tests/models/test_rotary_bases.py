"""The rotary base of a config, in every place where transformers 4 or 5 writes it."""

from __future__ import annotations

import json
import shutil

import pytest
import torch

from tests.models.configs import config_of
from tests.models.makers import change_json, make
from tests.paths import ROOT
from unmask import ModelError, load
from unmask.models.config import Config
from unmask.models.families import family_of

BERT = ROOT / "tests" / "golden" / "models-2" / "modernbert-chat-tiny"
TOKENS = torch.arange(10, 50)[None]
PLAIN = {"rope_type": "default"}


def read(name, **changes):
    config = Config(config_of(name, **changes), "somewhere/config.json")
    return family_of(config).read(config)


def bert(tmp_path, **changes):
    folder = shutil.copytree(BERT, tmp_path / "bert", ignore=shutil.ignore_patterns("golden_*"))
    change_json(folder / "config.json", **changes)
    return folder


def refusal(read):
    with pytest.raises(ModelError) as caught:
        read()
    message = str(caught.value)
    assert "\n" not in message
    assert "config.json: " in message
    return message


def difference(ours, theirs):
    with torch.no_grad():
        return (ours.module.logits(ours.module(TOKENS)) - theirs(TOKENS).logits).abs().max()


# One base for all layers.

SCALED = {"factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 1e4}


@pytest.mark.parametrize("name", ["dream", "sdar", "llada", "llada2"])
@pytest.mark.parametrize("key", ["rope_parameters", "rope_scaling"])
@pytest.mark.parametrize("kind", [{"type": "yarn"}, {"rope_type": "linear"}, {}], ids=str)
def test_scaled_angles_are_refused_with_the_key(name, key, kind):
    message = refusal(lambda: read(name, **{key: SCALED | kind}))
    assert f"{key} is {SCALED | kind!r}"[:80] in message
    assert "only the rope_type 'default' is supported" in message


@pytest.mark.parametrize("key", ["rope_parameters", "rope_scaling"])
@pytest.mark.parametrize("word", ["type", "rope_type"])
def test_scaling_without_a_factor_is_refused_by_its_type(key, word):
    longrope = {word: "longrope", "short_factor": [1.0], "long_factor": [2.0]}
    assert f"{key} is {{'{word}': 'longrope'" in refusal(lambda: read("sdar", **{key: longrope}))


def test_the_new_word_for_the_type_counts_more_than_the_old_one():
    assert read("sdar", rope_theta=..., rope_parameters=PLAIN | {"type": "yarn", "rope_theta": 5})


def test_a_base_for_a_kind_of_layers_is_refused_where_there_is_one_base():
    kinds = {"full_attention": PLAIN | {"rope_theta": 1e4}}
    message = refusal(lambda: read("sdar", rope_parameters=kinds))
    assert (
        "one rotary base for all layers, and the config gives one for 'full_attention'" in message
    )


def test_a_base_in_rope_scaling_is_read_if_no_key_contradicts_it():
    scaling = PLAIN | {"rope_theta": 5.0}
    assert read("sdar", rope_theta=..., rope_scaling=scaling).rope_theta == 5.0
    assert read("sdar", rope_theta=5, rope_scaling=scaling).rope_theta == 5.0
    message = refusal(lambda: read("sdar", rope_theta=1000000, rope_scaling=scaling))
    assert "rope_scaling gives the rotary base 5 and rope_theta 1000000; keep the one" in message


def test_both_places_of_the_options_must_agree():
    theirs = PLAIN | {"rope_theta": 5.0}
    both = {"rope_theta": ..., "rope_scaling": theirs, "rope_parameters": theirs}
    assert read("dream", **both).rope_theta == 5.0
    message = refusal(lambda: read("dream", **both | {"rope_scaling": PLAIN}))
    assert "remove the one that the model was not trained with" in message


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_theta": 77.0},
        {"rope_theta": ..., "rope_scaling": PLAIN | {"rope_theta": 77.0}},
        {"rope_theta": ..., "rope_parameters": {"type": "default", "rope_theta": 77.0}},
        {"rope_theta": 9.0, "rope_parameters": PLAIN | {"rope_theta": 77.0}},
    ],
    ids=["4", "rope_scaling", "type", "5"],
)
def test_the_logits_are_those_of_transformers_with_the_same_config(tmp_path, rope):
    transformers = pytest.importorskip("transformers")
    folder = make(tmp_path, "sdar", **rope, block_size=64)
    ours = load(folder, dtype="float32").model
    config = json.loads((folder / "config.json").read_text())
    theirs = transformers.Qwen3ForCausalLM.from_pretrained(
        folder,
        config=transformers.Qwen3Config(**config),
        attn_implementation="eager",
        dtype=torch.float32,
    )
    shape = (1, 1, TOKENS.shape[-1], TOKENS.shape[-1])
    seen = torch.zeros(shape)  # nothing is hidden
    with torch.no_grad():
        expected = theirs(TOKENS, attention_mask=seen).logits
        got = ours.module.logits(ours.module(TOKENS))
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


# ModernBERT: a base for the global layers and one for the local ones.


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_scaling is {'type': 'linear'"),
        ({"rope_scaling": PLAIN | {"rope_theta": 5.0}}, "rope_scaling gives the rotary base 5"),
        ({"rope_parameters": PLAIN | {"rope_theta": 5.0}}, "got the key 'rope_type'"),
        (
            {"rope_parameters": {"full_attention": {"type": "linear", "factor": 2.0}}},
            "rope_parameters of full_attention is {'type': 'linear'",
        ),
        (
            {"rope_parameters": {"sliding_attention": {"rope_type": "yarn", "factor": 2.0}}},
            "rope_parameters of sliding_attention is {'rope_type': 'yarn'",
        ),
    ],
)
def test_bases_of_modernbert_that_change_the_angles_are_refused(tmp_path, changes, said):
    folder = bert(tmp_path, **changes)
    assert said in refusal(lambda: load(folder))


@pytest.mark.parametrize(
    ("changes", "thetas"),
    [
        ({"global_rope_theta": 900.0, "local_rope_theta": 30.0}, (900.0, 30.0)),
        ({"global_rope_theta": 900.0, "local_rope_theta": ...}, (900.0, 10000.0)),
        ({"global_rope_theta": 900.0, "local_rope_theta": None}, (900.0, 900.0)),
        ({"rope_scaling": PLAIN}, (160000.0, 10000.0)),
        (
            {"rope_parameters": {"full_attention": None, "sliding_attention": {"rope_theta": 30}}},
            (160000.0, 30.0),
        ),
    ],
)
def test_the_bases_of_modernbert_give_the_logits_of_transformers(tmp_path, changes, thetas):
    transformers = pytest.importorskip("transformers")
    folder = bert(tmp_path, **changes)
    ours = load(folder, dtype="float32").model
    assert (ours.arch.rope_theta, ours.arch.local.rope_theta) == thetas
    plain = bert(tmp_path / "plain", global_rope_theta=thetas[0], local_rope_theta=thetas[1])
    theirs = transformers.ModernBertForMaskedLM.from_pretrained(plain, attn_implementation="eager")
    assert difference(ours, theirs) < 2e-4
    other = bert(tmp_path / "other", global_rope_theta=thetas[0], local_rope_theta=3.0)
    assert difference(load(other, dtype="float32").model, theirs) > 1e-2


# Heads whose features do not make pairs.


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        (
            "llada",
            {"d_model": 45, "n_heads": 3, "n_kv_heads": 3},
            "d_model must be an even multiple of n_heads = 3, so that head_dim is even, got 45",
        ),
        (
            "dream",
            {"hidden_size": 45, "num_attention_heads": 3, "num_key_value_heads": 1},
            "hidden_size must be an even multiple of num_attention_heads = 3, so that",
        ),
        ("sdar", {"head_dim": 15}, "head_dim must be even, got 15"),
        ("llada-moe", {"head_dim": 15}, "head_dim must be even, got 15"),
    ],
)
def test_an_odd_head_is_refused_by_the_key_that_the_config_has(tmp_path, name, changes, said):
    folder = make(tmp_path, name)
    change_json(folder / "config.json", **changes)
    assert said in refusal(lambda: load(folder))


def test_an_odd_head_of_modernbert_is_refused(tmp_path):
    folder = bert(tmp_path, hidden_size=42, num_attention_heads=2)
    message = refusal(lambda: load(folder))
    assert "hidden_size must be an even multiple of num_attention_heads = 2" in message
