"""Checks a kernel: compares it with plain PyTorch on a few rows with every oddity."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from unmask.kernels import reference
from unmask.kernels.common import NO_HISTORY, UNIFORM, ReduceInput, ReduceRows
from unmask.rules.view import BOTH_KL

FEW = 45  # tokens; no multiple of any vector width
MANY = 9001  # tokens; a GPU's kernel divides such a row and joins the parts
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
TOLERANCE = 1e-5


def disagreement(kernel: ReduceRows, device: torch.device, vocabulary: int = FEW) -> str | None:
    """What a kernel gets wrong with rows of so many tokens, or None."""
    for dtype in DTYPES:
        for rows in _examples(dtype, device, vocabulary):
            try:
                stats, expected = vars(kernel(rows)), vars(reference.reduce_rows(rows))
            except Exception as error:  # any failure makes the kernel unusable
                return f"it fails on {dtype}: {error}"
            for name, column in expected.items():
                if column is not None and not _close(stats[name], column):
                    return f"its {name} is wrong for {dtype}"
    return None


def _close(column: Tensor, expected: Tensor) -> bool:
    return column.shape == expected.shape and torch.allclose(
        column.double(), expected.double(), TOLERANCE, TOLERANCE, equal_nan=True
    )


def _examples(dtype: torch.dtype, device: torch.device, vocabulary: int) -> Iterator[ReduceInput]:
    """Rows with ties, suppressed tokens, broken numbers, and every kind of history."""
    places = torch.arange(6 * vocabulary, dtype=torch.float64).reshape(6, vocabulary)
    now, past = 5 * (places * 1.7).sin(), 5 * (places * 1.7 + 0.3).sin()
    now[0, [3, 40]] = 6.0  # a tie
    now[1, 7:] = past[1, 9:] = -math.inf  # the past allows two tokens more
    now[2, 20:31] = past[2, 20:31] = -math.inf
    now[3, 11] = math.nan
    now, past = now.to(device, dtype), past.to(device, dtype)
    slot = torch.tensor([0, 1, 2, 3, NO_HISTORY, UNIFORM], device=device)
    tokens = torch.tensor([0, 1, 25, 2, 44, 3], device=device)
    yield ReduceInput(now[slot != 3], kl=BOTH_KL)  # the token of a broken row is undefined
    yield ReduceInput(now, past, slot, tokens, BOTH_KL, uniform=True)
