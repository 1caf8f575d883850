"""Products in dtypes that the processor does not multiply."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch.nn.functional import linear as plain_linear

from unmask import load
from unmask.kernels.product import agrees, multiply
from unmask.models.products import INSTRUCTIONS, linear
from unmask.models.quantized import QuantizedLinear


@pytest.fixture(autouse=True)
def old_processor(monkeypatch):
    monkeypatch.setattr("unmask.models.products.multiplies", lambda dtype: False)
    monkeypatch.setattr("unmask.models.products.STRIP", 256 * 70)  # of 300 rows: five strips


def drawn(*shape, dtype=torch.bfloat16, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def test_a_product_is_the_exact_one_rounded_once():
    for dtype in INSTRUCTIONS:
        x, weight = drawn(2, 40, 256, dtype=dtype), drawn(300, 256, dtype=dtype, seed=1)
        bias = drawn(300, dtype=dtype, seed=2)
        exact = plain_linear(x.double(), weight.double(), bias.double())
        product = linear(x, weight, bias)
        assert (product.dtype, product.shape) == (dtype, exact.shape)
        assert (product == exact.to(dtype)).double().mean() > 0.995  # the sums are in float32
        assert torch.allclose(product.double(), exact, rtol=torch.finfo(dtype).eps, atol=1e-4)


def test_a_row_alone_gives_the_bits_of_a_row_in_a_batch():
    x, weight = drawn(160, 256), drawn(300, 256, seed=1)
    whole = linear(x, weight)
    for count in (1, 2, 3, 4, 7, 32, 159):
        assert torch.equal(linear(x[:count], weight), whole[:count]), count


@pytest.mark.skipif(not agrees(), reason="no kernel with torch's bits here")
@pytest.mark.parametrize("kind", ["bfloat16", "float32", "int4"])
def test_with_two_threads_a_row_has_the_bits_of_one_thread_in_any_batch(kind, monkeypatch):
    monkeypatch.setattr("unmask.models.products.STRIP", 1 << 19)  # as it is: two strips
    dtype = torch.float32 if kind == "int4" else getattr(torch, kind)
    x, weight = drawn(130, 1024, dtype=dtype), drawn(1000, 1024, dtype=dtype, seed=1)
    product = partial(linear, weight=weight)
    if kind == "int4":
        product = QuantizedLinear(1024, 1000, False, kind)
        product.convert(weight)
    whole = product(x)
    torch.set_num_threads(2)
    try:
        for count in (1, 16, 64, 128, 130):
            assert torch.equal(product(x[:count]), whole[:count]), count
    finally:
        torch.set_num_threads(1)


def test_a_weight_that_is_trained_gets_its_gradient():
    weight = drawn(8, 16).requires_grad_()
    linear(drawn(3, 16, seed=1), weight).sum().backward()
    assert weight.grad is not None


def test_float32_has_the_bits_of_torch():
    for rows, inputs in ((9, 256), (9, 512)):
        x = drawn(2, rows, inputs, dtype=torch.float32)
        weight, bias = (drawn(*shape, dtype=torch.float32) for shape in ((300, inputs), (300,)))
        assert torch.equal(linear(x, weight), plain_linear(x, weight)), (rows, inputs)
        assert torch.equal(linear(x, weight, bias), plain_linear(x, weight, bias)), (rows, inputs)


@pytest.mark.skipif(not agrees(), reason="no kernel with torch's bits here")
def test_few_rows_of_float32_have_the_bits_that_they_have_among_many():
    x, weight = (drawn(size, 512, dtype=torch.float32) for size in (20, 300))
    for count in (1, 3, 9, 19):  # torch itself adds so few in another order
        assert torch.equal(linear(x[:count], weight), plain_linear(x, weight)[:count]), count


@pytest.mark.skipif(not agrees(), reason="no kernel with torch's bits here")
def test_a_large_product_is_the_kernels_unless_its_gradient_is_wanted(monkeypatch):
    x, weight = (drawn(size, 512, dtype=torch.float32) for size in (9, 300))
    products = []
    monkeypatch.setattr(
        "unmask.models.products.multiply", lambda *given: products.append(given) or multiply(*given)
    )
    linear(x, weight)
    assert len(products) == 1
    for part in (x, weight):
        linear(x.requires_grad_(part is x), weight.requires_grad_(part is weight)).sum().backward()
        assert part.grad is not None
    assert len(products) == 1


def test_no_product_of_a_bfloat16_model_is_left_to_the_slow_routine(monkeypatch):
    model = load(device="cpu", dtype="bfloat16").model

    def slow(*given):
        raise AssertionError("a product in bfloat16")

    monkeypatch.setattr(torch.nn.functional, "linear", slow)
    with torch.inference_mode():
        hidden = model.module(torch.arange(20)[None])
        assert model.module.logits(hidden).dtype == torch.bfloat16
