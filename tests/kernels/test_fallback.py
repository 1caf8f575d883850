"""A kernel that fails or disagrees is found, and plain PyTorch takes over with one line."""

import warnings

import pytest
import torch

from unmask import kernels
from unmask.kernels import native, reference
from unmask.kernels.common import ReduceInput

ROWS = ReduceInput(torch.randn(3, 50))


@pytest.fixture(autouse=True)
def fresh():
    """Forgets what was found out about kernels, before and after."""
    kernels.missing.cache_clear()
    kernels._broken.clear()
    yield
    kernels.missing.cache_clear()
    kernels._broken.clear()


@pytest.fixture
def planted(monkeypatch):
    """Plants another function as the CPU's fastest kernel."""

    def plant(reduce_rows):
        monkeypatch.setattr(native, "prepare", lambda: torch.device("cpu"))
        monkeypatch.setattr(native, "serves", lambda rows: True)
        monkeypatch.setattr(native, "reduce_rows", reduce_rows)

    return plant


def wrong(rows):
    stats = reference.reduce_rows(rows)
    return type(stats)(**{**vars(stats), "entropy": stats.entropy + 0.01})


def test_a_kernel_that_disagrees_is_not_used_and_says_so_once(planted):
    planted(wrong)
    with pytest.warns(RuntimeWarning, match="'native' is not used: its entropy is wrong") as told:
        stats, _ = (kernels.reduce_rows(ROWS) for _ in range(2))
    assert len(told) == 1
    assert "\n" not in str(told[0].message)
    assert torch.equal(stats.entropy, reference.reduce_rows(ROWS).entropy)
    assert kernels.backend("cpu") == "torch"
    assert kernels.is_broken("native")


def test_a_kernel_of_a_gpu_is_also_compared_on_rows_that_it_divides(monkeypatch):
    seen = []

    def wrong_on_many(kernel, device, vocabulary):
        seen.append(vocabulary)
        return "its token is wrong" if vocabulary > 4096 else None

    monkeypatch.setattr(native, "prepare", lambda: torch.device("cuda"))
    monkeypatch.setattr(kernels, "disagreement", wrong_on_many)
    with pytest.warns(RuntimeWarning, match="'native' is not used: its token is wrong"):
        assert kernels.missing("native") == "its token is wrong"
    assert seen == [45, 9001]


def test_a_kernel_that_fails_in_the_middle_of_a_run_hands_over(planted):
    def fails_on_many(rows):
        if rows.now.shape[-1] > 45:
            raise RuntimeError("out of resources\nshared memory")
        return reference.reduce_rows(rows)

    planted(fails_on_many)
    with pytest.warns(RuntimeWarning, match="it fails: out of resources;") as told:
        stats, _ = (kernels.reduce_rows(ROWS) for _ in range(2))
    assert len(told) == 1
    assert torch.equal(stats.token, reference.reduce_rows(ROWS).token)


def test_a_kernel_that_was_chosen_by_name_raises_its_error(planted):
    planted(reference.reduce_rows)

    def fails(rows):
        raise RuntimeError("out of resources")

    with kernels.use("native"):
        planted(fails)
        with pytest.raises(RuntimeError, match="out of resources"):
            kernels.reduce_rows(ROWS)


def test_a_kernel_that_is_not_there_is_no_fault(monkeypatch):
    def unavailable():
        raise kernels.Unavailable("there is no C++ compiler")

    monkeypatch.setattr(native, "prepare", unavailable)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernels.reduce_rows(ROWS)
    assert not kernels.is_broken("native")
