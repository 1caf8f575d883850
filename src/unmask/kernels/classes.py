"""The masses of classes of tokens, in one pass over the logits."""

from __future__ import annotations

import torch
from torch import Tensor

from unmask.kernels import backend, native
from unmask.kernels.common import ReduceInput, chunks

DEEP = -80.0  # below this, e^z is too small for float32


@torch.no_grad()
def class_masses(logits: Tensor, kinds: Tensor, count: int) -> Tensor:
    """log sum exp z of each class, up to a constant for each row: [N, V] -> [N, C] in float64.

    `kinds` is the class of every token, [V], int32 and below `count`. No class that holds a finite
    logit becomes -inf, however low it is.
    """
    if backend(logits.device.type) != "native" or not native.serves(ReduceInput(logits)):
        return _exact_sums(logits, kinds, count).log()
    sums, depth = native.class_sums(logits, kinds, count)
    deep = (depth < DEEP).nonzero()[:, 0]
    if len(deep):
        sums[deep] = _exact_sums(logits[deep], kinds, count)
    return sums.log()


def _exact_sums(logits: Tensor, kinds: Tensor, count: int) -> Tensor:
    """Sums of exp(z - top) over classes, in float64: [N, C]."""
    sums = torch.zeros((len(logits), count), dtype=torch.float64, device=logits.device)
    for rows in chunks(logits):
        z = logits[rows].double()
        depth = (z - z.amax(-1, keepdim=True)).clamp_min(-700.0)
        weights = depth.masked_fill_(z == -torch.inf, -torch.inf).exp_()
        sums[rows].index_add_(-1, kinds, weights)
    return sums
