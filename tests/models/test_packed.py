"""Packed weights: the bits of torch by default, the same in any batch, and as easy to copy."""

from __future__ import annotations

import pickle
from copy import deepcopy

import pytest
import torch
from torch.nn.functional import linear as plain_linear

from tests.models.common import logits, one_line
from tests.models.makers import make
from unmask import Session, decode, decode_many, load
from unmask.errors import ModelError, RequestError
from unmask.models import packed as packing
from unmask.models.packed import PackedLinear, keeps_bits

CPU = torch.device("cpu")
BFLOAT16 = torch.bfloat16
keeping_bits = pytest.mark.skipif(
    not keeps_bits(BFLOAT16, CPU), reason="needs a processor that multiplies bfloat16"
)
DTYPES = [torch.float32, pytest.param(BFLOAT16, marks=keeping_bits)]


def packed_linear(inputs, outputs, dtype, bias=True):
    generator = torch.Generator().manual_seed(inputs + outputs)
    weight = torch.randn(outputs, inputs, generator=generator).to(dtype)
    linear = PackedLinear(inputs, outputs, bias, dtype=dtype).requires_grad_(False)
    linear.convert(weight)
    return linear, weight


def packed_parts(model):
    parts = [part for part in model.module.modules() if isinstance(part, PackedLinear)]
    return [part for part in parts if part.packed is not None]


@keeping_bits
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(96, 288), (130, 70), (896, 128), (1000, 131), (3072, 1024)])
def test_a_packed_map_in_bfloat16_has_the_bits_of_torch(shape, bias):
    linear, weight = packed_linear(*shape, BFLOAT16, bias)
    for rows in (2, 3, 5, 16, 31, 64, 129):
        x = torch.randn(rows, shape[0]).to(BFLOAT16)
        assert torch.equal(linear(x), plain_linear(x, weight, linear.bias)), rows


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(96, 288), (1000, 131), (4096, 6144)])
def test_a_row_has_the_same_bits_alone_and_among_others(dtype, shape):
    linear, _ = packed_linear(*shape, dtype)
    x = torch.randn(40, shape[0]).to(dtype)
    whole = linear(x)
    for rows in (1, 2, 3, 4, 7, 33):
        assert torch.equal(linear(x[:rows]), whole[:rows]), rows
    assert torch.equal(linear(x[None, 5]), whole[None, 5])


def test_a_packed_map_in_float32_differs_from_torch_by_rounding_only():
    linear, weight = packed_linear(3072, 512, torch.float32)
    x = torch.randn(64, 3072)
    exact = plain_linear(x.double(), weight.double(), linear.bias.double())
    assert (linear(x) - exact).std() < 2e-6 * exact.std()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("copied", [deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_has_the_ordinary_weight_and_computes_the_same(dtype, copied):
    linear, weight = packed_linear(200, 80, dtype)
    other, x = copied(linear), torch.randn(9, 200).to(dtype)
    assert torch.equal(other.weight, weight)
    torch.testing.assert_close(other(x), linear(x))
    assert linear.weight is None  # the first one stays packed


def test_another_dtype_unpacks():
    linear, weight = packed_linear(200, 80, torch.float32)
    linear.to(torch.float64)
    assert torch.equal(linear.weight, weight.double())
    x = torch.randn(3, 200, dtype=torch.float64)
    assert torch.equal(linear(x), plain_linear(x, linear.weight, linear.bias))


@keeping_bits
@pytest.mark.parametrize("name", ["llada", "dream", "sdar", "llada-moe", "llada2"])
def test_weights_in_bfloat16_are_packed_by_default_and_no_logit_changes(tmp_path, name):
    make(tmp_path, name)
    packing._same_bits.cache_clear()  # the comparison is made while loading
    model, plain = (load(tmp_path, dtype="bfloat16", pack=pack).model for pack in (None, False))
    assert packed_parts(model)
    assert not packed_parts(plain)
    assert model.parameters == plain.parameters
    assert torch.equal(logits(model), logits(plain))


def test_weights_in_float32_are_packed_only_if_asked_for(tmp_path):
    make(tmp_path, "dream")
    assert not packed_parts(load(tmp_path, dtype="float32").model)
    model = load(tmp_path, dtype="float32", pack=True).model
    assert packed_parts(model)
    plain = load(tmp_path, dtype="float32", pack=False).model
    torch.testing.assert_close(logits(model), logits(plain))


@keeping_bits
def test_weights_without_room_in_memory_stay_mapped_to_their_file(tmp_path, monkeypatch):
    make(tmp_path, "llada")
    monkeypatch.setattr(packing, "free_memory", lambda device: 1000)
    assert not packed_parts(load(tmp_path, dtype="bfloat16").model)


@keeping_bits
def test_weights_whose_products_differ_in_a_bit_are_not_packed(tmp_path, monkeypatch):
    make(tmp_path, "llada")
    monkeypatch.setattr(packing, "_same_bits", lambda dtype: False)
    assert not packed_parts(load(tmp_path, dtype="bfloat16").model)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_five_prompts_in_a_batch_get_what_they_get_alone(dtype):
    pack = True if dtype == "float32" else None
    model, tokenizer = load(dtype=dtype, pack=pack)
    texts = ["Reverse: fox, owl, hen.", "Sort: owl, hen.", "Copy: fox.", "Write 12 + 3, 40 - 5.",
             "Dan has 19 books. He loses 5. Next he finds 1. How many now?"]  # fmt: skip
    prompts = [tokenizer.encode_chat([{"role": "user", "content": text}]) for text in texts]
    together = decode_many(model, prompts, length=24, batch_size=5)
    for prompt, result in zip(prompts, together, strict=True):
        alone = decode(model, prompt, length=24)
        assert (alone.answer.tolist(), alone.nfe) == (result.answer.tolist(), result.nfe)


def test_what_cannot_be_packed_is_refused_by_name():
    with pytest.raises(ModelError) as caught:
        load(dtype="float16", pack=True)
    assert one_line(caught) == (
        "pack cannot be used: it is for float32 and bfloat16, and the dtype is float16; leave it "
        "out"
    )
    for other in ({"quantize": "int8"}, {"compile": True}, {"device_map": "auto"}):
        with pytest.raises(ModelError, match=r"pack and|and pack"):
            load(pack=True, **other)
    with pytest.raises(RequestError, match="pack is for loading a checkpoint"):
        Session(load(), pack=True)
    assert "the device is cuda" in str(packing.trouble(torch.float32, torch.device("cuda")))


def test_a_replay_packs_the_weights_again():
    session = Session(pack=True, length=16)
    assert session.source().pack is True
    assert packed_parts(session.source().load())


def test_an_input_whose_gradient_is_wanted_gets_it():
    linear, weight = packed_linear(48, 32, torch.float32)
    x = torch.randn(5, 48).requires_grad_()
    linear(x).sum().backward()
    assert torch.allclose(x.grad, weight.sum(0).expand(5, -1))


def test_an_input_of_another_dtype_is_told_as_by_an_ordinary_map():
    linear, _ = packed_linear(48, 32, torch.float32)
    with pytest.raises(RuntimeError, match="dtype"):
        linear(torch.randn(5, 48).double())


def test_a_saved_state_holds_the_ordinary_weights():
    linear, weight = packed_linear(48, 32, torch.float32)
    state = torch.nn.Sequential(linear).state_dict()
    assert list(state) == ["0.bias", "0.weight"]
    assert torch.equal(state["0.weight"], weight)
