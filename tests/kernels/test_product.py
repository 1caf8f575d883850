"""Products by the C++ kernel: the bits of torch's, for every dtype of the weight."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F  # noqa: N812  (the field's name for it)

from unmask.kernels import product
from unmask.kernels.common import Unavailable
from unmask.kernels.product import agrees, multiply, serves, trouble

usable = pytest.mark.skipif(not agrees(), reason="no kernel with torch's bits here")
SHAPES = ((4, 384, 350), (17, 500, 300), (33, 1000, 131), (130, 1024, 192), (300, 577, 257))


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


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


@pytest.fixture
def unchecked():
    """As if the kernel had not been compared with torch yet; and once more afterwards."""
    trouble.cache_clear()
    yield
    trouble.cache_clear()


@pytest.mark.usefixtures("unchecked")
def test_a_kernel_with_other_bits_does_not_serve(monkeypatch):
    right = F.linear
    monkeypatch.setattr(product, "multiply", lambda *given: right(*given) * (1 + 2**-23))
    assert not serves(drawn(512, 512))


@pytest.mark.usefixtures("unchecked")
def test_without_the_library_torch_multiplies(monkeypatch):
    def absent():
        raise Unavailable("it was not built")

    monkeypatch.setattr(product, "library", absent)
    assert not serves(drawn(512, 512))
