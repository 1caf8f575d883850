"""Norms and rotations by the C++ kernel: the bits of torch's, for every size and dtype."""

from __future__ import annotations

import pytest
import torch

from unmask.kernels import layer
from unmask.kernels.common import Unavailable
from unmask.kernels.layer import (
    agrees,
    normalise,
    plain_normalise,
    plain_rotate,
    rotate,
    trouble,
)

usable = pytest.mark.skipif(not agrees(), reason="no kernel with torch's bits here")
pytestmark = pytest.mark.usefixtures("without_gradients")


@pytest.fixture
def without_gradients():
    with torch.no_grad():
        yield


@pytest.fixture
def by_the_kernel(monkeypatch):
    """An error if torch's operations are used."""

    def refused(*_):
        raise AssertionError("the kernel did not serve")

    monkeypatch.setattr(layer, "plain_normalise", refused)
    monkeypatch.setattr(layer, "plain_rotate", refused)


@usable
@pytest.mark.parametrize("dtype", layer.DTYPES)
@pytest.mark.usefixtures("by_the_kernel")
def test_a_norm_has_the_bits_of_torch(dtype):
    for size in [*range(8, 400, 8), 896, 1000, 1536, 2048, 3072, 4096, 8192, 65536]:
        for scale in (1e-6, 1.0, 300.0):
            x = (scale * torch.randn(2, 3, size)).to(dtype)
            weight = torch.randn(size).to(dtype)
            assert torch.equal(normalise(x, weight, 1e-5), plain_normalise(x, weight, 1e-5)), size


@usable
@pytest.mark.parametrize(
    ("dtype", "table"),
    [
        (torch.float32, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.bfloat16, torch.bfloat16),
    ],
)
@pytest.mark.usefixtures("by_the_kernel")
def test_a_rotation_has_the_bits_of_torch(dtype, table):
    for rows, places, heads, size, turned in (
        (1, 5, 3, 64, 64),
        (4, 7, 2, 128, 32),
        (2, 1, 1, 24, 16),
    ):
        x = (5 * torch.randn(rows, places, heads, size)).to(dtype)
        cos, sin = torch.randn(2, 1, places, 1, turned).to(table)
        assert torch.equal(rotate(x, cos, sin), plain_rotate(x, cos, sin)), (size, turned)


@usable
@pytest.mark.usefixtures("by_the_kernel")
def test_threads_change_no_bit():
    x, weight = torch.randn(600, 1024), torch.randn(1024)
    heads, angles = x.view(1, 600, 16, 64), torch.randn(2, 1, 600, 1, 64)
    assert x.numel() > 3 * layer.SHARE
    norm, turned = normalise(x, weight, 1e-5), rotate(heads, *angles)
    torch.set_num_threads(3)
    try:
        assert torch.equal(normalise(x, weight, 1e-5), norm)
        assert torch.equal(rotate(heads, *angles), turned)
    finally:
        torch.set_num_threads(1)


@usable
@pytest.mark.usefixtures("by_the_kernel")
def test_a_number_that_is_none_stays_none():
    x, weight = torch.randn(3, 64).bfloat16(), torch.ones(64).bfloat16()
    x[1, 5] = torch.nan
    assert normalise(x, weight, 1e-5).isnan().any(-1).tolist() == [False, True, False]
    angles = torch.ones(2, 1, 3, 1, 64)
    assert rotate(x.view(1, 3, 1, 64), *angles).isnan().sum() == 2


def test_other_tensors_are_left_to_torch():
    weight, eps = torch.ones(64), 1e-5
    strided = torch.randn(64, 6).t()
    for x in (torch.randn(2, 64).double(), torch.randn(2, 64).half(), strided):
        some = weight.to(x.dtype)
        assert torch.equal(normalise(x, some, eps), plain_normalise(x, some, eps))
    narrow, angles = torch.randn(1, 3, 2, 12), torch.randn(2, 1, 3, 1, 12)
    assert torch.equal(rotate(narrow, *angles), plain_rotate(narrow, *angles))
    many = torch.randn(2, 3, 2, 32), torch.randn(2, 3, 1, 32), torch.randn(2, 3, 1, 32)
    assert torch.equal(rotate(*many), plain_rotate(*many))


def test_a_gradient_passes_through():
    x = torch.randn(3, 64, requires_grad=True)
    with torch.enable_grad():
        normalise(x, torch.ones(64), 1e-5).sum().backward()
    assert x.grad is not None


@pytest.fixture
def unchecked():
    """As if the kernel had not been compared with torch yet; and once more afterwards."""
    trouble.cache_clear()
    yield
    trouble.cache_clear()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", ["_normalise", "_rotate"])
def test_a_kernel_with_other_bits_does_not_serve(monkeypatch, name):
    right = getattr(layer, name)
    monkeypatch.setattr(layer, name, lambda *given: right(*given) * (1 + 2**-7))
    assert not agrees()
    x, weight = torch.randn(2, 64), torch.ones(64)
    assert torch.equal(normalise(x, weight, 1e-5), plain_normalise(x, weight, 1e-5))


@pytest.mark.usefixtures("unchecked")
def test_without_the_library_torch_computes(monkeypatch):
    def absent():
        raise Unavailable("it was not built")

    monkeypatch.setattr(layer, "library", absent)
    assert trouble() == "it was not built"
    x, weight = torch.randn(2, 64), torch.ones(64)
    assert torch.equal(normalise(x, weight, 1e-5), plain_normalise(x, weight, 1e-5))
