"""Weights in 8 and 4 bits: close to the originals, small, and the same in any batch."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch
from torch.nn.functional import linear as plain_linear

from tests.models.common import IDS, logits, one_line
from tests.models.makers import change_json, make
from unmask import Session, decode, decode_many, load
from unmask.errors import ModelError, RequestError, UnknownName
from unmask.models.quantized import GROUP, QuantizedLinear, quantize_layers
from unmask.models.transformer import Transformer

KINDS = {"int8": 0.01, "int4": 0.12}  # the largest error, relative to the outputs' deviation


def quantized(kind, outputs=70, inputs=96, seed=0, bias=False):
    weight = torch.randn(outputs, inputs, generator=torch.Generator().manual_seed(seed))
    linear = QuantizedLinear(inputs, outputs, bias, kind)
    linear.convert(weight)
    return linear, weight


@pytest.mark.parametrize("kind", KINDS)
def test_a_quantized_map_is_close_to_the_map(kind):
    linear, weight = quantized(kind)
    x = torch.randn(200, 96)
    error = linear(x) - plain_linear(x, weight)
    assert 0 < error.std() / plain_linear(x, weight).std() < KINDS[kind]


def test_int8_keeps_every_weight_within_half_a_step_of_its_row():
    linear, weight = quantized("int8")
    kept = linear.codes.float() * linear.scale[:, None]
    assert ((kept - weight).abs() <= linear.scale[:, None] * 0.5001).all()


def test_int4_keeps_whole_multiples_of_its_scales_exactly():
    steps = torch.randint(-8, 8, (6, 2, GROUP))
    steps[..., 5] = -8
    weight = (steps * torch.tensor([0.5, 0.25])[:, None]).view(6, -1)
    linear = QuantizedLinear(2 * GROUP, 6, False, "int4")
    linear.convert(weight)
    assert torch.equal(linear.widened(slice(None), torch.float32), weight)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_zeros_stay_zero(kind):
    linear = QuantizedLinear(64, 3, False, kind)
    linear.convert(torch.zeros(3, 64))
    assert not linear(torch.randn(5, 64)).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_alone_gives_the_bits_of_a_row_in_a_batch(kind, dtype):
    linear, _ = quantized(kind, outputs=300, inputs=256)
    x = torch.randn(160, 256).to(dtype)
    whole = linear(x)
    for count in (1, 2, 3, 4, 7, 32, 159):
        assert torch.equal(linear(x[:count]), whole[:count]), count


@pytest.mark.parametrize("kind", KINDS)
def test_wide_maps_are_widened_in_strips_with_the_same_result(kind, monkeypatch):
    linear, _ = quantized(kind, bias=True)
    linear.bias.data.fill_(0.5)
    x = torch.randn(2, 9, 96)
    whole = linear(x)
    monkeypatch.setattr("unmask.models.products.STRIP", 96 * 7)  # ten strips of seven rows
    assert torch.allclose(linear(x), whole, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_maps_of_the_layers_are_quantized(kind):
    model, plain = load(quantize=kind).model, load().model
    module = model.module
    assert type(module.head) is type(plain.module.head)
    assert torch.equal(module.embed.weight, plain.module.embed.weight)
    parts = [part for part in module.layers.modules() if isinstance(part, QuantizedLinear)]
    assert len(parts) == 7 * len(module.layers)
    assert all(part.weight is None for part in parts)
    assert model.parameters == plain.parameters


@pytest.mark.parametrize("family", ["llada", "dream", "sdar"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_checkpoint_in_int8_predicts_as_in_full(tmp_path, family, dtype):
    make(tmp_path, family)
    full, small = load(tmp_path, dtype=dtype).model, load(tmp_path, dtype=dtype, quantize="int8")
    assert small.model.dtype == full.dtype
    error = (logits(small.model) - logits(full)).std() / logits(full).std()
    assert error < 0.05
    assert small.model.module(IDS).dtype == full.dtype


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_five_prompts_in_a_batch_get_what_they_get_alone(kind, dtype):
    model, tokenizer = load(quantize=kind, dtype=dtype)
    texts = ["Reverse: fox, owl, hen.", "Sort: owl, hen.", "Copy: fox.", "Write 12 + 3, 40 - 5.",
             "Dan has 19 books. He loses 5. Next he finds 1. How many now?"]  # fmt: skip
    prompts = [tokenizer.encode_chat([{"role": "user", "content": text}]) for text in texts]
    together = decode_many(model, prompts, length=24, batch_size=5)
    for prompt, result in zip(prompts, together, strict=True):
        alone = decode(model, prompt, length=24)
        assert (alone.answer.tolist(), alone.nfe) == (result.answer.tolist(), result.nfe)


def test_what_cannot_be_quantized_is_refused_by_name(tmp_path):
    make(tmp_path, "llada-moe")
    with pytest.raises(ModelError) as caught:
        load(tmp_path, quantize="int8")
    assert "mixtures of experts" in one_line(caught)
    assert "leave it out, or in Python spread the layers" in one_line(caught)
    for other in ({"compile": True}, {"device_map": "auto"}):
        with pytest.raises(ModelError, match="do not work together"):
            load(quantize="int8", **other)
    with pytest.raises(UnknownName, match="did you mean 'int8'"):
        load(quantize="int9")
    with pytest.raises(RequestError, match="quantize is for loading a checkpoint"):
        Session(load(), quantize="int8")


def test_int4_names_the_map_whose_rows_do_not_divide(tmp_path):
    make(tmp_path, "llada")
    with pytest.raises(ModelError) as caught:
        load(tmp_path, quantize="int4")
    assert "multiple of 32" in one_line(caught)
    assert "layers.0.mlp.down has 40" in one_line(caught)


@pytest.mark.parametrize("method", ["gptq", "awq", "compressed-tensors"])
def test_a_checkpoint_that_is_already_quantized_is_refused_with_a_hint(tmp_path, method):
    make(tmp_path, "dream")
    change_json(tmp_path / "config.json", quantization_config={"quant_method": method, "bits": 4})
    with pytest.raises(ModelError) as caught:
        load(tmp_path)
    assert method in one_line(caught)
    assert "quantize" in one_line(caught)


def test_a_quantisation_without_a_name_is_refused_too(tmp_path):
    make(tmp_path, "dream")
    change_json(tmp_path / "config.json", quantization_config={"load_in_8bit": True})
    with pytest.raises(ModelError, match=r"already quantised \(by an unnamed method\)"):
        load(tmp_path)


def test_the_files_of_autogptq_are_recognised(tmp_path):
    make(tmp_path, "llada")
    (tmp_path / "quantize_config.json").write_text('{"bits": 4}')
    with pytest.raises(ModelError, match="gptq"):
        load(tmp_path)


def test_a_replay_loads_the_same_bits(tmp_path):
    session = Session(quantize="int8", length=16)
    answer = session.generate("Copy: fox.")
    assert answer.trace is not None
    assert session.source().quantize == "int8"
    weights = session.source().load().module.layers[0].attn.q
    assert isinstance(weights, QuantizedLinear)
    assert session.settings_record(session.format())["quantize"] == "int8"


def test_on_a_gpu_quantisation_without_torchao_is_refused_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchao", None)
    arch = load(device="cpu").model.arch
    with pytest.raises(ModelError, match="needs the package torchao"):
        quantize_layers(Transformer(arch), arch, "int8", torch.device("cuda"))


def test_on_a_gpu_torchao_gets_every_weight_with_the_kind_that_was_asked_for(monkeypatch):
    asked = []
    package, quantization = ModuleType("torchao"), ModuleType("torchao.quantization")
    quantization.Int8WeightOnlyConfig = lambda: "int8"
    quantization.Int4WeightOnlyConfig = lambda group_size: f"int4 by {group_size}"
    quantization.quantize_ = lambda linear, config: asked.append((linear.weight.shape, config))
    package.quantization = quantization
    monkeypatch.setitem(sys.modules, "torchao", package)
    monkeypatch.setitem(sys.modules, "torchao.quantization", quantization)
    arch = load(device="cpu").model.arch
    weight, x = torch.randn(arch.hidden, arch.heads * arch.head_dim), torch.randn(3, arch.hidden)
    for kind in KINDS:
        module = Transformer(arch)
        quantize_layers(module, arch, kind, torch.device("cuda"))
        linear = module.layers[0].attn.o
        linear.convert(weight)
        assert torch.equal(linear(x), plain_linear(x, weight))  # the weight is still what it was
    assert asked == [(weight.shape, "int8"), (weight.shape, f"int4 by {GROUP}")]
