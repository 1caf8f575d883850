"""The C++ kernel: each instruction set, threads, and what keeps it from serving."""

from __future__ import annotations

import ctypes
from itertools import product
from pathlib import Path

import pytest
import torch

from tests.kernels.oddities import (
    PATTERNS,
    SIZES,
    STATS,
    assert_right,
    example,
    plain,
    random_logits,
)
from unmask.kernels import missing, native
from unmask.kernels.check import DTYPES
from unmask.kernels.common import ReduceInput, Unavailable
from unmask.rules.view import BOTH_KL

built = pytest.mark.skipif(missing("native") is not None, reason=str(missing("native")))


@pytest.fixture
def unloaded():
    """As if the library had not been loaded yet; and once more afterwards."""
    native.library.cache_clear()
    yield
    native.library.cache_clear()


@built
@pytest.mark.parametrize("level", range(len(native.LEVELS)), ids=native.LEVELS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_instruction_set_gives_the_statistics_of_float64(level, dtype):
    for pattern, size in product(PATTERNS, SIZES):
        rows = example(pattern, size, dtype)
        assert_right(native.reduce_rows(rows, level), rows)


@built
@pytest.mark.parametrize("threads", [2, 3, 16])
def test_the_number_of_threads_does_not_change_a_bit(threads):
    rows = example(plain, 70_001, torch.float32)
    alone = native.reduce_rows(rows)
    torch.set_num_threads(threads)
    try:
        together = native.reduce_rows(rows)
    finally:
        torch.set_num_threads(1)
    for name in ("token", *STATS):
        assert torch.equal(getattr(together, name), getattr(alone, name))


@built
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_narrow_dtype_has_the_bits_of_the_same_numbers_in_float32(dtype):
    rows = example(plain, 3000, dtype)
    wide = ReduceInput(rows.now.float(), rows.past.float(), rows.slot, kl=BOTH_KL)
    narrow, wide = native.reduce_rows(rows), native.reduce_rows(wide)
    for name in ("token", *STATS):
        assert torch.equal(getattr(narrow, name), getattr(wide, name))


@built
def test_every_float16_is_read_as_the_number_that_it_is():
    numbers = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(torch.float16)
    numbers = numbers[numbers.isfinite()]
    pairs = torch.stack([numbers, torch.zeros_like(numbers)], -1)
    stats = native.reduce_rows(
        ReduceInput(pairs, tokens=torch.zeros(len(pairs), dtype=torch.int64))
    )
    torch.testing.assert_close(
        stats.confidence, pairs.double().softmax(-1)[:, 0], rtol=1e-6, atol=0
    )


@built
def test_the_exponential_is_right_over_its_whole_range():
    depths = torch.linspace(-79.0, 0.0, 20_001)
    pairs = torch.stack([torch.zeros_like(depths), depths], -1)
    token = torch.ones(len(pairs), dtype=torch.int64)
    past = torch.tensor([[0.0, -200.0]])  # KL(past || now) is then the log of the sum, 1 + exp(z)
    stats = native.reduce_rows(ReduceInput(pairs, past, torch.zeros_like(token), token, BOTH_KL))
    wanted = pairs.double().logsumexp(-1)
    torch.testing.assert_close(stats.kl_prev_cur, wanted, rtol=0, atol=1.5e-7)
    torch.testing.assert_close(stats.entropy, _entropy(pairs), rtol=3e-7, atol=3e-7)


def _entropy(logits):
    return torch.distributions.Categorical(logits=logits.double()).entropy()


@built
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            ReduceInput(torch.zeros(2, 3), torch.zeros(2, 3), torch.tensor([0, 2])),
            "slot 2 is not below 2",
        ),
        (ReduceInput(torch.zeros(2, 3), None, torch.tensor([0, -1])), "slot 0 is not below 0"),
        (ReduceInput(torch.zeros(1, 3), tokens=torch.tensor([3])), "token 3 is not below 3"),
    ],
    ids=["slot", "no past", "token"],
)
def test_memory_that_is_not_the_tensors_is_never_read(rows, message):
    with pytest.raises(IndexError, match=message):
        native.reduce_rows(rows)


@pytest.mark.usefixtures("unloaded")
def test_a_library_that_was_not_built_is_said_to_be_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "_reduce.so")
    with pytest.raises(Unavailable, match="it was not built"):
        native.prepare()


@pytest.mark.usefixtures("unloaded")
def test_a_library_of_another_machine_cannot_be_loaded(monkeypatch, tmp_path):
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "_reduce.so")
    native.LIBRARY.write_bytes(b"not a library")
    with pytest.raises(Unavailable, match="it cannot be loaded"):
        native.prepare()


@built
@pytest.mark.usefixtures("unloaded")
@pytest.mark.parametrize("kept", [70, 4096, 20_000, -1])
def test_a_library_that_was_cut_off_is_refused_before_it_is_loaded(monkeypatch, tmp_path, kept):
    whole = native.LIBRARY.read_bytes()
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "_reduce.so")
    native.LIBRARY.write_bytes(whole[:kept])
    with pytest.raises(Unavailable, match="not a whole file: python -m unmask"):
        native.prepare()


@built
@pytest.mark.usefixtures("unloaded")
def test_a_library_that_lacks_a_call_cannot_be_loaded(monkeypatch, tmp_path):
    whole = native.LIBRARY.read_bytes()
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "_reduce.so")
    native.LIBRARY.write_bytes(whole.replace(b"unmask_normalise", b"unmask_normal1se"))
    with pytest.raises(Unavailable, match=r"it cannot be loaded: .*unmask_normalise"):
        native.prepare()


@built
@pytest.mark.usefixtures("unloaded")
def test_a_library_of_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(native, "VERSION", native.VERSION + 1)
    with pytest.raises(Unavailable, match="another version"):
        native.prepare()


@built
def test_the_library_depends_on_nothing_of_torch():
    assert b"libtorch" not in Path(native.LIBRARY).read_bytes()
    assert ctypes.CDLL(str(native.LIBRARY)).unmask_reduce_level() in range(len(native.LEVELS))


@built
def test_float64_is_not_its_business():
    assert not native.serves(ReduceInput(random_logits(0, 1, 4, torch.float64)))
    assert not native.serves(
        ReduceInput(torch.zeros(1, 4), torch.zeros(1, 4, dtype=torch.bfloat16))
    )
