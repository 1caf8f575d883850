"""Who serves: chosen by hand, or the fastest that is there and right."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from unmask import UnknownName, UnmaskError, kernels
from unmask.kernels import check, reference
from unmask.kernels.common import Unavailable
from unmask.kernels.reduce import backend, backends, divergence, reduce, use

CPU = torch.device("cpu")


@pytest.fixture
def fresh():
    """Nothing is known of any kernel; and again afterwards."""
    kernels.missing.cache_clear()
    yield
    kernels.missing.cache_clear()


@pytest.fixture
def without_native(monkeypatch, fresh):
    def refuse():
        raise Unavailable("it was not built")

    monkeypatch.setattr("unmask.kernels.native.prepare", refuse)


def test_plain_pytorch_is_always_there():
    assert backends()["torch"] is None
    with use("torch"):
        assert backend() == "torch"


def test_the_native_kernel_serves_the_cpu_where_it_was_built():
    wanted = "native" if backends()["native"] is None else "torch"
    with use("auto"):
        assert backend() == wanted


@pytest.mark.usefixtures("without_native")
def test_without_the_native_kernel_plain_pytorch_serves():
    with use("auto"):
        assert backend() == "torch"
        assert reduce(torch.zeros(2, 3)).confidence.tolist() == pytest.approx([1 / 3] * 2)


@pytest.mark.usefixtures("without_native")
def test_a_kernel_that_was_asked_for_and_is_not_there_is_an_error():
    with pytest.raises(UnmaskError, match="'native' cannot be used here: it was not built"):
        use("native")


def test_an_unknown_kernel_is_an_error_with_a_hint():
    with pytest.raises(UnknownName, match="did you mean 'native'"):
        use("nativ")


def test_a_choice_holds_until_the_end_of_its_block():
    before = backend()
    with use("torch"):
        with use("auto"):
            pass
        assert backend() == "torch"
    assert backend() == before


def test_a_choice_without_a_block_holds_until_the_next():
    with use("auto"):
        use("torch")
        assert backend() == "torch"


@pytest.mark.parametrize("name", ["confidence", "margin", "entropy", "kl_prev_cur", "kl_cur_prev"])
def test_the_check_finds_a_kernel_that_is_a_little_wrong(name):
    def wrong(rows):
        right = reference.reduce_rows(rows)
        return replace(right, **{name: getattr(right, name) * 1.001})

    assert check.disagreement(wrong, CPU) == f"its {name} is wrong for torch.float32"


def test_the_check_finds_a_kernel_that_breaks_ties_otherwise():
    def wrong(rows):
        right = reference.reduce_rows(rows)
        return replace(right, token=right.token + 1)

    assert check.disagreement(wrong, CPU) == "its token is wrong for torch.float32"


def test_the_check_finds_a_kernel_that_fails():
    def wrong(rows):
        raise RuntimeError("no such instruction")

    assert check.disagreement(wrong, CPU) == "it fails on torch.float32: no such instruction"


@pytest.mark.parametrize("name", ["native", "triton"])
def test_a_kernel_that_can_be_loaded_is_right(name):
    """Or the tests of that kernel would be skipped."""
    try:
        module = kernels.kernel(name)
        device = module.prepare()
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert check.disagreement(module.reduce_rows, device) is None


@pytest.mark.usefixtures("fresh")
def test_a_wrong_kernel_does_not_serve(monkeypatch):
    def wrong(rows):
        right = reference.reduce_rows(rows)
        return replace(right, entropy=right.entropy + 1)

    monkeypatch.setattr("unmask.kernels.native.prepare", lambda: CPU)
    monkeypatch.setattr("unmask.kernels.native.reduce_rows", wrong)
    monkeypatch.setattr(kernels, "_broken", {})
    with use("auto"), pytest.warns(RuntimeWarning, match="'native' is not used"):
        assert backend() == "torch"
    assert backends()["native"] == "its entropy is wrong for torch.float32"


@pytest.mark.parametrize("name", ["native", "triton"])
def test_float64_is_left_to_plain_pytorch(name):
    if reason := kernels.missing(name):
        pytest.skip(reason)
    logits = torch.tensor([[0.0, 1e-9]], dtype=torch.float64)
    with use(name):
        assert float(reduce(logits).margin) == pytest.approx(5e-10, rel=1e-6)


def test_rows_of_unequal_length_are_not_compared():
    with pytest.raises(ValueError, match="rows of 3 tokens cannot be compared with rows of 4"):
        divergence(torch.zeros(1, 3), torch.zeros(1, 4))
