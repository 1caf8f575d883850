"""The Triton kernel, through its interpreter where there is no GPU: parts of any size."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.kernels.oddities import PATTERNS, assert_right, example, plain
from unmask.kernels import missing
from unmask.kernels.check import DTYPES
from unmask.kernels.common import Unavailable

triton = pytest.importorskip("triton", reason="triton is not installed")
pytestmark = [
    pytest.mark.skipif(missing("triton") is not None, reason=str(missing("triton"))),
    pytest.mark.filterwarnings("ignore:.*:RuntimeWarning"),  # NaN and infinity, in numpy
]


# The dtypes take turns: every part takes the interpreter 20 ms, and test_parity.py has them all.
@pytest.mark.parametrize(("turn", "part", "size"), [(0, 16, 49), (1, 64, 65), (2, 1024, 401)])
@pytest.mark.parametrize("number", range(len(PATTERNS)), ids=lambda n: PATTERNS[n].__name__)
def test_rows_of_any_number_of_parts_have_the_statistics_of_float64(turn, part, size, number):
    from unmask.kernels import cuda

    rows = example(PATTERNS[number], size, DTYPES[(turn + number) % len(DTYPES)])
    assert_right(cuda.reduce_rows(rows, part), rows)


@pytest.mark.skipif(torch.cuda.is_available(), reason="counted in the interpreter only")
@pytest.mark.parametrize("part", [16, 64])
def test_every_logit_of_either_tensor_is_read_once(monkeypatch, part):
    from triton.runtime.interpreter import InterpreterBuilder

    from unmask.kernels import cuda

    read = []
    load = InterpreterBuilder.create_masked_load

    def counted(self, pointers, mask, *rest):
        read.extend(pointers.data[mask.data].tolist() if mask.data.size == part else [])
        return load(self, pointers, mask, *rest)

    monkeypatch.setattr(InterpreterBuilder, "create_masked_load", counted)
    rows = replace(example(plain, 101, torch.float32), slot=torch.tensor([2, 0, 1, 3, 4]))
    cuda.reduce_rows(rows, part)
    assert len(read) == len(set(read)) == 2 * rows.now.numel()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_the_interpreter_and_without_a_gpu_it_says_so(monkeypatch):
    from unmask.kernels import cuda

    monkeypatch.delenv("TRITON_INTERPRET")
    monkeypatch.setattr(cuda, "_reduce_part", triton.jit(cuda._reduce_part.fn))
    with pytest.raises(Unavailable, match="there is no CUDA device"):
        cuda.prepare()
