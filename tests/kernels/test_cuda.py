"""The Triton kernel, through its interpreter where there is no GPU: parts of any size."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from tests.kernels.oddities import PATTERNS, assert_right, example, plain
from unmask.kernels import missing
from unmask.kernels.check import DTYPES

pytest.importorskip("triton", reason="triton is not installed")
pytestmark = [
    pytest.mark.skipif(missing("triton") is not None, reason=str(missing("triton"))),
    pytest.mark.filterwarnings("ignore:.*:RuntimeWarning"),  # NaN and infinity, in numpy
]


@pytest.mark.parametrize(("part", "size"), [(16, 65), (64, 201), (1024, 401)])
@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.__name__)
def test_rows_of_any_number_of_parts_have_the_statistics_of_float64(part, size, pattern):
    from unmask.kernels import cuda

    for dtype in DTYPES:
        rows = example(pattern, size, dtype)
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


def test_without_the_interpreter_and_without_a_gpu_it_says_so():
    code = "from unmask.kernels import missing; print(missing('triton'))"
    plain_environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=plain_environment, capture_output=True, text=True
    )
    wanted = "None" if torch.cuda.is_available() else "there is no CUDA device"
    assert done.stdout.strip() == wanted
