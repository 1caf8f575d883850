"""The masses of classes of tokens, by every kernel, against float64."""

from __future__ import annotations

import math

import pytest
import torch

from unmask.kernels import missing, native, use
from unmask.kernels.check import DTYPES
from unmask.kernels.classes import class_masses

COUNT = 7


def example(size: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits with suppressed tokens and one class without a token, and the exact log-masses."""
    torch.manual_seed(size)
    kinds = torch.randint(0, COUNT - 1, (size,), dtype=torch.int32)
    logits = (6 * torch.randn(3, size)).to(dtype)
    logits[1, ::3] = -math.inf
    logits[2] = -math.inf
    logits[2, size // 2] = 1.0
    of_class = [logits.double()[:, kinds == kind] for kind in range(COUNT)]
    exact = torch.stack([z.logsumexp(-1) for z in of_class], -1)
    return logits, kinds, exact - logits.double().amax(-1, keepdim=True)


@pytest.mark.skipif(missing("native") is not None, reason=str(missing("native")))
def test_every_instruction_set_sums_classes_to_six_digits():
    for dtype in DTYPES:
        for size in (5, 2048, 4099):
            logits, kinds, exact = example(size, dtype)
            for level in range(len(native.LEVELS)):
                sums, depth = native.class_sums(logits, kinds, COUNT, level)
                assert torch.allclose(sums.log(), exact, rtol=0, atol=2e-6), (dtype, size, level)
                finite = logits.double().masked_fill(logits == -math.inf, math.inf)
                lowest = finite.amin(-1) - logits.double().amax(-1)
                assert torch.allclose(depth, lowest, rtol=1e-6)
    with pytest.raises(IndexError, match="not below 7"):
        native.class_sums(logits, kinds + COUNT, COUNT)


@pytest.mark.parametrize("kernel", ["auto", "torch"])
def test_a_class_of_very_low_logits_keeps_its_mass(kernel):
    kinds = torch.tensor([0, 1, 1, 2], dtype=torch.int32)
    logits = torch.tensor([[0.0, -200.0, -201.0, -math.inf], [0.0, -1.0, -2.0, -3.0]])
    with use(kernel):
        masses = class_masses(logits, kinds, 3)
        alone = class_masses(logits[1:], kinds, 3)
    low = -200 + math.log1p(math.exp(-1))
    assert masses[0].tolist() == pytest.approx([0.0, low, -math.inf])
    assert torch.equal(masses[1:], alone)
