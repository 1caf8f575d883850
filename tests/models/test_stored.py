"""Stored tensors: headers are checked without the weights, and a head that differs is told."""

from __future__ import annotations

import json
import shutil
import warnings

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.models.common import logits, one_line
from tests.models.makers import change_json, make, random_tensors, write_weights
from tests.paths import ROOT
from unmask import ModelError, load
from unmask.models import checkpoint
from unmask.models.describe import describe, weights

SMALL = ROOT / "tests" / "golden" / "models-2"
HEADS = {"llada": "model.transformer.ff_out.weight", "sdar": "lm_head.weight"}
TIED = {"llada": "weight_tying", "sdar": "tie_word_embeddings"}
EMBEDDING = {"llada": "model.transformer.wte.weight", "sdar": "model.embed_tokens.weight"}


def tied(folder, family, change=lambda head: head, shards=1, **more):
    """A tied checkpoint that stores a head too."""
    make(folder, family, **{TIED[family]: True})
    config = json.loads((folder / "config.json").read_text())
    tensors = random_tensors(family, config)
    tensors[HEADS[family]] = change(tensors[EMBEDDING[family]].clone())
    write_weights(folder, tensors, shards)
    return folder


def last_number_changed(head):
    head[-1, -1] += 1
    return head


@pytest.mark.parametrize("family", HEADS)
@pytest.mark.parametrize("shards", [1, 3])
def test_a_stored_head_that_differs_is_told_and_the_embedding_used(tmp_path, family, shards):
    folder = tied(tmp_path / "tied", family, last_number_changed, shards)
    without = make(tmp_path / "without", family, **{TIED[family]: True})
    with pytest.warns(UserWarning, match="differs from it; the embedding is used") as caught:
        model = load(folder).model
    (message,) = (str(each.message) for each in caught)
    assert str(folder) in message
    assert HEADS[family] in message
    assert f"set {TIED[family]} to false in config.json" in message
    assert "\n" not in message
    assert torch.equal(logits(model), logits(load(without).model))


def test_the_advice_leads_to_the_stored_head(tmp_path):
    folder = tied(tmp_path, "sdar", last_number_changed)
    change_json(folder / "config.json", tie_word_embeddings=False)
    stored = load_file(folder / "model.safetensors")["lm_head.weight"]
    assert torch.equal(load(folder).model.module.head.weight, stored)


@pytest.mark.parametrize(
    "change",
    [lambda head: head, lambda head: head.to(torch.bfloat16), lambda head: head.double()],
    ids=["equal", "rounded", "wider"],
)
def test_a_stored_head_with_the_numbers_of_the_embedding_is_quiet(tmp_path, monkeypatch, change):
    monkeypatch.setattr(checkpoint, "STRIP", 100)  # three rows at a time
    load(tied(tmp_path, "sdar", change))  # a warning would be an error


def test_a_stored_head_is_compared_to_its_last_row(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "STRIP", 100)
    folder = tied(tmp_path, "sdar", last_number_changed)
    with pytest.warns(UserWarning, match="differs from it"):
        load(folder)


def test_a_stored_head_of_another_height_differs(tmp_path):
    folder = tied(tmp_path, "sdar", lambda head: head[:-1].clone())
    with pytest.warns(UserWarning, match="differs from it"):
        load(folder)


def test_a_head_that_is_not_supported_gets_no_advice_to_use_it(tmp_path):
    folder = shutil.copytree(SMALL / "modernbert-chat-tiny", tmp_path / "bert")
    tensors = load_file(folder / "model.safetensors")
    tensors["decoder.weight"] = tensors["model.embeddings.tok_embeddings.weight"] + 1
    save_file(tensors, folder / "model.safetensors")
    with pytest.warns(UserWarning, match="a head of its own is not supported for modernbert-chat"):
        load(folder)


# Headers.


def wrong_shape(folder):
    tensors = load_file(folder / "model.safetensors")
    tensors["model.transformer.ln_f.weight"] = torch.zeros(33)
    write_weights(folder, tensors)


def wrong_shard(folder):
    write_weights(folder, load_file(folder / "model.safetensors"), shards=3)
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    where = index["weight_map"]
    files = sorted(set(where.values()))
    name = "model.transformer.ln_f.weight"
    where[name] = next(file for file in files if file != where[name])
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def extra_layer(folder):
    change_json(folder / "config.json", n_layers=1)


def codes(folder):
    tensors = load_file(folder / "model.safetensors")
    name = "model.transformer.ln_f.weight"
    tensors[name] = torch.zeros(32, dtype=torch.int8)
    write_weights(folder, tensors)


@pytest.mark.parametrize("spoil", [wrong_shape, wrong_shard, extra_layer, codes])
def test_the_headers_tell_what_loading_would_tell(folder, spoil):
    spoil(folder)
    with pytest.raises(ModelError) as loading:
        load(folder)
    with pytest.raises(ModelError) as describing:
        weights(describe(folder))
    assert one_line(describing) == one_line(loading)


def test_a_wrong_shape_is_found_before_any_weight_is_read(folder, monkeypatch):
    wrong_shape(folder)
    monkeypatch.setattr(checkpoint, "_read", None)
    with pytest.raises(ModelError, match="has shape"):
        load(folder)


def test_tensors_of_an_ordinary_gpt2_are_told_from_diffugpts(tmp_path):
    folder = shutil.copytree(SMALL / "diffugpt-tiny", tmp_path / "gpt")
    tensors = load_file(folder / "model.safetensors")
    for top in ("transformer.", ""):
        plain = {
            name.replace("denoise_model.", top).replace("embed_tokens", f"{top}wte"): value
            for name, value in tensors.items()
        }
        save_file(plain, folder / "model.safetensors")
        for read in (load, lambda folder: weights(describe(folder))):
            with pytest.raises(ModelError) as caught:
                read(folder)
            message = one_line(caught)
            assert "an ordinary GPT2LMHeadModel, not of family diffugpt" in message
            assert "diffugpt-s" in message


def test_a_tied_folder_without_a_head_says_nothing(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(make(tmp_path, "sdar", tie_word_embeddings=True))
