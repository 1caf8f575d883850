"""Products by the C++ kernel: the bits of torch's, for every dtype of the weight."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F  # noqa: N812  (the field's name for it)

from unmask.kernels import product
from unmask.kernels.common import Unavailable
from unmask.kernels.product import ORDERS, agrees, multiply, order, serves

usable = pytest.mark.skipif(not agrees(), reason="no kernel with torch's bits here")
# Rows, inputs, outputs; on Intel's AVX-512 from 16 rows and 192 outputs on.
SHAPES = ((16, 384, 350), (17, 501, 300), (33, 1000, 231), (130, 1024, 192), (300, 577, 257))


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def unchecked():
    """As if the kernel had not been compared with torch yet; and once more afterwards."""
    order.cache_clear()
    yield
    order.cache_clear()


@usable
def test_a_product_has_the_bits_of_torch():
    for rows, inputs, outputs in SHAPES:
        x, weight, bias = drawn(rows, inputs), drawn(outputs, inputs, seed=1), drawn(outputs)
        assert torch.equal(multiply(x, weight), F.linear(x, weight)), (rows, inputs, outputs)
        assert torch.equal(multiply(x, weight, bias), F.linear(x, weight, bias))


@usable
def test_a_narrow_weight_has_the_bits_of_the_same_numbers_in_float32():
    x, wide = drawn(50, 700), 40 * drawn(333, 700, seed=1)
    for dtype in (torch.bfloat16, torch.float16, torch.int8):
        weight = wide.clamp(-127, 127).to(dtype)
        assert torch.equal(multiply(x, weight), F.linear(x, weight.float())), dtype


def added_one_by_one(x, weight, chains):
    """x W^T in float32: chains of fused multiply-adds, which are then added in order."""
    total, first = torch.zeros(len(x), len(weight)), 0
    for count in chains:
        chain = torch.zeros_like(total)
        for k in range(first, first + count):
            chain = (x[:, k, None].double() * weight[:, k].double() + chain.double()).float()
        total, first = total + chain, first + count
    return total


@pytest.mark.parametrize("by", ORDERS)
def test_a_sum_is_made_of_chains_as_the_order_says(by):
    chains = {1: ((192, 192, 117), (192,) * 4 + (133,)), 2: ((251, 250), (384, 384, 133))}
    for lengths in chains[by.level]:
        x, weight = drawn(19, sum(lengths)), drawn(101, sum(lengths), seed=1)
        try:
            made = multiply(x, weight, by=by)
        except Unavailable as error:
            pytest.skip(str(error))
        assert torch.equal(made, added_one_by_one(x, weight, lengths)), lengths
        assert torch.equal(made[:5], multiply(x[:5], weight, by=by)), lengths


@usable
@pytest.mark.usefixtures("unchecked")
def test_the_order_does_not_depend_on_the_threads_of_the_first_product():
    expected = order()
    order.cache_clear()
    torch.set_num_threads(2)
    try:
        assert (order(), torch.get_num_threads()) == (expected, 2)
    finally:
        torch.set_num_threads(1)


@pytest.mark.usefixtures("unchecked")
def test_the_comparison_is_made_on_the_cpu_whatever_the_default_device():
    expected = order()
    order.cache_clear()
    with torch.device("meta"):
        assert order() == expected
    with pytest.raises(ValueError, match="must be on the CPU"):
        multiply(drawn(4, 500), drawn(300, 500).to("meta"))


@usable
def test_neither_threads_nor_other_rows_change_a_bit():
    x, weight = drawn(150, 500), drawn(1000, 500, seed=1)
    assert x.numel() * len(weight) > 3 * product.SHARE  # enough for three threads
    whole = multiply(x, weight)
    for count in (1, 3, 16, 149):
        assert torch.equal(multiply(x[:count], weight), whole[:count]), count
    torch.set_num_threads(3)
    try:
        assert torch.equal(multiply(x, weight), whole)
    finally:
        torch.set_num_threads(1)


@usable
def test_a_strided_x_is_read_where_it_lies():
    x, weight = drawn(500, 40).t(), drawn(300, 500, seed=1)
    assert torch.equal(multiply(x, weight), multiply(x.contiguous(), weight))


def test_what_does_not_fit_is_refused():
    weight = drawn(300, 500)
    for x in (drawn(4, 499), drawn(4, 500).double()):
        with pytest.raises(ValueError, match=r"x must be float32 \[M, 500\]"):
            multiply(x, weight)
    with pytest.raises(ValueError, match=r"bias must be float32 \[300\]"):
        multiply(drawn(4, 500), weight, drawn(299))


@usable
def test_small_and_unknown_weights_are_left_to_torch():
    assert serves(drawn(512, 512))
    for weight in (drawn(96, 288), drawn(1024, 300), drawn(12, 40000), drawn(512, 512).double()):
        assert not serves(weight)
    assert not serves(drawn(512, 512).t())


@pytest.mark.usefixtures("unchecked")
def test_a_kernel_with_other_bits_does_not_serve(monkeypatch):
    right = F.linear
    monkeypatch.setattr(product, "multiply", lambda *given, by: right(*given) * (1 + 2**-23))
    assert not serves(drawn(512, 512))


@pytest.mark.usefixtures("unchecked")
def test_without_the_library_torch_multiplies(monkeypatch):
    def absent():
        raise Unavailable("it was not built")

    monkeypatch.setattr(product, "library", absent)
    assert not serves(drawn(512, 512))
