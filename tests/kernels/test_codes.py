"""Products in bfloat16 with weights of 8 and 4 bits: right, and the same in any batch."""

from __future__ import annotations

import pytest
import torch

from unmask.kernels import codes
from unmask.kernels.codes import multiply_codes, serves, trouble
from unmask.models.quantized import BITS, QuantizedLinear

usable = pytest.mark.skipif(trouble() is not None, reason="needs AVX-512 BF16")
KINDS = list(BITS)
# rows, inputs, outputs: tiles, panels and parts of the weight that are whole and that are not
SHAPES = [(1, 32, 1), (5, 96, 288), (16, 192, 96), (17, 224, 97), (70, 416, 100), (300, 1056, 203)]


def quantized(kind, inputs, outputs, bias=False, seed=0):
    generator = torch.Generator().manual_seed(seed)
    linear = QuantizedLinear(inputs, outputs, bias, kind).requires_grad_(False)
    linear.convert(torch.randn(outputs, inputs, generator=generator))
    if bias:
        linear.bias.copy_(torch.randn(outputs, generator=generator))
    return linear.bfloat16() if bias else linear


def product(linear, x):
    return multiply_codes(x, linear.codes, linear.scale, linear.bias, BITS[linear.kind])


def exact(linear, x):
    """The product in float64."""
    weight = linear.widened(slice(None), torch.bfloat16).double()
    if linear.kind == "int8":
        weight *= linear.scale[:, None].double()
    out = x.double() @ weight.t()
    return out if linear.bias is None else out + linear.bias.double()


@usable
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_product_is_the_exact_one_rounded_once(kind, shape):
    rows, inputs, outputs = shape
    linear = quantized(kind, inputs, outputs)
    x = torch.randn(rows, inputs).bfloat16()
    wanted = exact(linear, x)
    error = (product(linear, x).double() - wanted).abs()
    step = wanted.abs() * 2**-8 + 1e-4 * inputs**0.5  # half a step of bfloat16, and the sums
    assert (error <= step).all()


@usable
@pytest.mark.parametrize("kind", KINDS)
def test_a_bias_is_added_before_the_result_is_rounded(kind):
    linear = quantized(kind, 64, 50, bias=True)
    linear.scale = linear.scale.float() if kind == "int8" else linear.scale
    x = torch.randn(9, 64).bfloat16()
    wanted = exact(linear, x)
    assert ((product(linear, x).double() - wanted).abs() <= wanted.abs() * 2**-8 + 1e-3).all()


@usable
@pytest.mark.parametrize("kind", KINDS)
def test_neither_threads_nor_other_rows_change_a_bit(kind):
    linear, x = quantized(kind, 512, 1000), torch.randn(150, 512).bfloat16()
    assert x.numel() * linear.out_features > 3 * codes.SHARE  # enough for three threads
    whole = product(linear, x)
    for count in (1, 3, 16, 65, 149):
        assert torch.equal(product(linear, x[:count]), whole[:count]), count
    torch.set_num_threads(3)
    try:
        assert torch.equal(product(linear, x), whole)
    finally:
        torch.set_num_threads(1)


@usable
def test_a_quantized_map_uses_the_kernel_in_bfloat16_only(monkeypatch):
    linear, called = quantized("int8", 64, 32), []
    monkeypatch.setattr(
        "unmask.models.quantized.multiply_codes",
        lambda *given: called.append(given) or multiply_codes(*given),
    )
    linear(torch.randn(2, 3, 64))
    assert not called
    assert linear(torch.randn(2, 3, 64).bfloat16()).shape == (2, 3, 32)
    assert called


@pytest.mark.parametrize(("bits", "inputs"), [(8, 33), (4, 48)])
def test_rows_that_do_not_divide_are_left_to_torch(bits, inputs):
    assert not serves(torch.randn(4, inputs).bfloat16(), bits, inputs)


def test_an_odd_number_of_inputs_is_multiplied_all_the_same():
    linear, x = quantized("int8", 33, 20), torch.randn(6, 33).bfloat16()
    torch.testing.assert_close(linear(x).double(), exact(linear, x), rtol=0.02, atol=0.05)


def test_what_does_not_fit_is_refused():
    linear = quantized("int8", 64, 20)
    for x in (torch.randn(4, 63).bfloat16(), torch.randn(4, 64)):
        with pytest.raises(ValueError, match="x must be bfloat16 rows for codes"):
            product(linear, x)
    with pytest.raises(ValueError, match=r"scale must have the shape \[20\]"):
        multiply_codes(torch.randn(4, 64).bfloat16(), linear.codes, linear.scale[:3], None, 8)


@pytest.fixture
def stand_in(monkeypatch):
    """A kernel by torch that errs with codes of so many bits; none has been checked yet."""

    def multiply(x, stored, scale, bias, bits, wrong):
        linear = QuantizedLinear(x.shape[1], len(stored), False, "int8" if bits == 8 else "int4")
        linear.codes, linear.scale = stored, scale
        return (exact(linear, x) * (1.1 if bits == wrong else 1.0)).bfloat16()

    def plant(wrong):
        trouble.cache_clear()
        monkeypatch.setattr(codes, "multiply_codes", lambda *given: multiply(*given, wrong))

    yield plant
    trouble.cache_clear()


@pytest.mark.parametrize("bits", [8, 4])
def test_a_kernel_that_multiplies_wrongly_is_not_used_and_says_so_once(stand_in, bits):
    stand_in(wrong=bits)
    with pytest.warns(RuntimeWarning, match=f"is not used: its products with {bits} bits") as told:
        assert not serves(torch.randn(4, 64).bfloat16(), 8, 64)
    assert trouble() == f"its products with {bits} bits are wrong"
    assert len(told) == 1


def test_a_kernel_that_multiplies_rightly_is_used(stand_in):
    stand_in(wrong=None)
    assert trouble() is None
