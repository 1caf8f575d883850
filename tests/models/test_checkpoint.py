"""Weights on disk: one line names a missing, spare, misshapen or broken tensor."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.models.configs import FAMILIES, config_of, tensor_shapes
from tests.models.makers import change_json, make, random_tensors, write_json, write_weights
from unmask import ModelError, load
from unmask.models import untrusted

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"


@pytest.fixture
def refused(tmp_path):
    """The one-line error of a damaged checkpoint."""

    def line(spoil, family="llada", shards=1, **changes):
        folder = make(tmp_path / "model", family, shards=shards, **changes)
        spoil(folder)
        with pytest.raises(ModelError) as caught:
            load(folder)
        message = str(caught.value)
        assert "\n" not in message
        assert str(folder) in message
        return message

    return line


def with_tensors(change, family="llada", shards=1):
    """Change the weights and write them again."""

    def spoil(folder):
        tensors = random_tensors(family, config_of(family))
        change(tensors)
        write_weights(folder, tensors, shards)

    return spoil


@pytest.mark.parametrize("family", FAMILIES)
def test_any_missing_tensor_is_named(tmp_path, family):
    names = list(tensor_shapes(family, config_of(family)))
    folder = make(tmp_path, family)
    for name in names[:: max(1, len(names) // 12)]:
        with_tensors(lambda tensors, name=name: tensors.pop(name), family)(folder)
        with pytest.raises(ModelError) as caught:
            load(folder)
        message = str(caught.value)
        assert f"the tensor {name!r} is missing" in message
        assert str(folder) in message
        assert "\n" not in message


@pytest.mark.parametrize("shards", [1, 3])
def test_a_renamed_tensor_is_asked_for_with_the_nearest_name(refused, shards):
    def rename(tensors):
        tensors["model.transformer.blocks.1.qproj.weight"] = tensors.pop(
            "model.transformer.blocks.1.q_proj.weight"
        )

    message = refused(with_tensors(rename, shards=shards))
    assert "the tensor 'model.transformer.blocks.1.q_proj.weight' is missing" in message
    assert "the nearest is 'model.transformer.blocks.1.qproj.weight'" in message


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tensor_that_has_no_place_is_named(refused, family):
    def add(tensors):
        tensors["model.layers.0.odd.weight"] = torch.zeros(3)

    message = refused(with_tensors(add, family), family)
    assert SINGLE in message
    assert "'model.layers.0.odd.weight' has no place" in message


def test_several_tensors_without_a_place_are_counted(refused):
    def add(tensors):
        tensors.update({f"odd.{i}": torch.zeros(3) for i in range(3)})

    assert "and 2 more have no place" in refused(with_tensors(add))


def test_a_layer_more_than_the_config_says_is_no_silent_loss(refused):
    message = refused(lambda folder: change_json(folder / "config.json", n_layers=1))
    assert "model.transformer.blocks.1." in message
    assert "no place" in message


def test_frequencies_that_old_savers_left_behind_are_no_weights(tmp_path):
    folder = make(tmp_path, "dream")

    def add(tensors):
        tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.zeros(4)

    with_tensors(add, "dream")(folder)
    assert load(folder).family.name == "dream"


SHAPED = {
    "llada": "model.transformer.blocks.0.ff_proj.weight",
    "dream": "model.layers.1.self_attn.k_proj.bias",
    "llada-moe": "model.layers.0.mlp.experts.3.up_proj.weight",
    "llada2": "model.layers.1.mlp.gate.expert_bias",
    "sdar": "model.layers.0.self_attn.q_norm.weight",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_wrong_shape_is_given_beside_the_right_one(refused, family):
    name = SHAPED[family]
    right = tensor_shapes(family, config_of(family))[name]
    wrong = (right[0] + 1, *right[1:])

    def reshape(tensors):
        tensors[name] = torch.zeros(wrong)

    message = refused(with_tensors(reshape, family), family)
    assert f"{name!r} has shape {wrong}, config.json asks for {right}" in message
    assert SINGLE in message


@pytest.mark.parametrize("rows", [-8, -1, 1, 8])
def test_fused_queries_keys_and_values_have_exactly_their_rows(refused, rows):
    name = "model.layers.1.attention.query_key_value.weight"

    def resize(tensors):
        tensors[name] = torch.zeros(len(tensors[name]) + rows, 32)

    message = refused(with_tensors(resize, "llada2"), "llada2")
    assert f"{name!r} has shape {(64 + rows, 32)}" in message


def test_fewer_key_heads_than_the_fused_tensor_holds_are_noticed(refused):
    message = refused(
        lambda folder: change_json(folder / "config.json", num_key_value_heads=1), "llada2"
    )
    assert "query_key_value" in message


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.999])
@pytest.mark.parametrize("shards", [1, 3])
def test_a_file_that_was_cut_is_named(refused, share, shards):
    cut = []

    def spoil(folder):
        file = sorted(folder.glob("*.safetensors"))[-1]
        cut.append(file.name)
        file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])

    message = refused(spoil, shards=shards)
    assert cut[0] in message
    assert "not a whole safetensors file" in message
    assert "fetch it again" in message


@pytest.mark.parametrize(
    "garbage", [b"not a tensor at all, but long enough", b"\xff" * 64, b"<html>\n</html>\n" * 9]
)
def test_a_file_of_something_else_is_named(refused, garbage):
    message = refused(lambda folder: (folder / SINGLE).write_bytes(garbage))
    assert SINGLE in message
    assert "not a whole safetensors file" in message


def test_a_pointer_to_a_large_file_is_not_the_file(refused):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 123\n"
    message = refused(lambda folder: (folder / SINGLE).write_text(pointer))
    assert "not a whole safetensors file" in message


def test_a_missing_shard_is_named_with_the_index_that_wants_it(refused):
    message = refused(
        lambda folder: (folder / "model-00002-of-00003.safetensors").unlink(), shards=3
    )
    assert INDEX in message
    assert "'model-00002-of-00003.safetensors'" in message


def test_a_shard_that_lacks_what_the_index_promises_is_named(refused):
    name = "model.transformer.wte.weight"

    def move(folder):
        file = folder / INDEX
        where = json.loads(file.read_text())["weight_map"]
        other = next(shard for shard in where.values() if shard != where[name])
        change_json(file, weight_map=where | {name: other})

    message = refused(move, shards=2)
    assert name in message
    assert ".safetensors" in message


@pytest.mark.parametrize("content", [{}, {"metadata": {}}, {"weight_map": []}])
def test_an_index_without_its_map_is_named(refused, content):
    message = refused(lambda folder: write_json(folder / INDEX, content))
    assert INDEX in message
    assert "'weight_map' is missing" in message


def test_an_index_that_is_no_json_is_named(refused):
    message = refused(lambda folder: (folder / INDEX).write_text("{"))
    assert f"{INDEX} is not JSON" in message


def test_pickled_weights_must_be_converted_first(refused):
    def replace(folder):
        (folder / SINGLE).unlink()
        (folder / "pytorch_model.bin").write_bytes(b"")

    message = refused(replace)
    assert "pytorch_model.bin must be converted to safetensors" in message


def test_a_folder_without_weights_says_what_it_looked_for(refused):
    message = refused(lambda folder: (folder / SINGLE).unlink())
    assert f"holds neither {SINGLE} nor {INDEX}" in message


@pytest.mark.parametrize("text", ["", "{", "{'a': 1}", '{"a": 1,\n "b"}', "[1]", "\ufeff{}"])
@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_broken_json_is_named(refused, file, text):
    assert file in refused(lambda folder: (folder / file).write_text(text, encoding="utf-8"))


def test_json_in_another_encoding_is_named(refused):
    message = refused(lambda folder: (folder / "config.json").write_bytes(b'{"a": "\xff\xfe"}'))
    assert "config.json" in message


def test_a_folder_without_a_config_is_told_so(refused):
    message = refused(lambda folder: (folder / "config.json").unlink())
    assert "config.json is missing" in message
    assert "give the folder of a released checkpoint" in message


@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float16, torch.float32])
def test_weights_keep_the_dtype_they_are_stored_in(tmp_path, stored):
    for family in FAMILIES:
        model = load(make(tmp_path / family, family, stored=stored)).model
        dtypes = {p.dtype for name, p in model.module.named_parameters() if "bias" not in name}
        assert dtypes == {stored}
        assert model.dtype == stored


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_the_bias_of_a_router_stays_in_float32(tmp_path, dtype):
    folder = make(tmp_path, "llada2", stored=torch.bfloat16)
    module = load(folder, dtype=dtype).model.module
    assert module.layers[1].mlp.bias.dtype == torch.float32


def test_a_file_of_several_dtypes_runs(tmp_path):
    folder = make(tmp_path, "dream")
    tensors = random_tensors("dream", config_of("dream"), stored=torch.bfloat16)
    norms = {name: t.float() for name, t in tensors.items() if "norm" in name}
    write_weights(folder, tensors | norms)
    model = load(folder).model
    with torch.no_grad():
        assert model.module(torch.tensor([[1, 2, 3]])).isfinite().all()


def test_no_weight_asks_for_a_gradient(tmp_path):
    for family in FAMILIES:
        module = load(make(tmp_path / family, family)).model.module
        assert not any(parameter.requires_grad for parameter in module.parameters())


def test_no_weight_is_left_on_the_meta_device(tmp_path):
    for family in FAMILIES:
        module = load(make(tmp_path / family, family, shards=2)).model.module
        assert {parameter.device.type for parameter in module.parameters()} == {"cpu"}


def test_a_weight_that_holds_codes_is_refused_by_its_name(tmp_path):
    """Codes of 8 bits need scales, which no tensor here has; read as numbers they are wrong."""
    folder = make(tmp_path, "sdar")
    file = next(folder.glob("*.safetensors"))
    tensors = load_file(file)
    name = next(name for name in tensors if name.endswith("q_proj.weight"))
    tensors[name] = tensors[name].to(torch.int8)
    save_file(tensors, file)
    with pytest.raises(ModelError, match=rf"'{name}' holds I8; weights are numbers of 16 bits"):
        load(folder)


def test_a_config_that_may_not_be_read_is_not_called_broken_json(tmp_path, monkeypatch):
    def refuses(path, mode="rb"):
        raise PermissionError(13, "Permission denied")

    make(tmp_path, "dream")
    monkeypatch.setattr(untrusted, "opened", refuses)
    with pytest.raises(ModelError) as caught:
        load(tmp_path)
    assert str(caught.value) == f"{tmp_path / 'config.json'} cannot be read: Permission denied"
