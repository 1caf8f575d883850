"""The methods that `bench.decision` measures: several decision steps and two bounds."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from torch import Tensor

from unmask.kernels import missing, use
from unmask.kernels.common import chunks
from unmask.kernels.reduce import Previous, reduce

os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no compile workers during a measurement

Method = Callable[[Tensor, Tensor], object]

KERNELS = ("torch", "compile", "native")


def listing(logits: Tensor, previous: Tensor) -> None:
    """Confidence and KL as the paper's listing has them, with margin and entropy in its manner."""
    p, q = logits.float().softmax(-1), previous.float().softmax(-1)
    p.topk(2, dim=-1)
    (p * p.log()).sum(-1)
    (q * (q.log() - p.log())).sum(-1)


def log_softmax(logits: Tensor, previous: Tensor) -> None:
    """The same from log-softmaxes: two logarithms less, and nothing underflows."""
    lp, lq = logits.float().log_softmax(-1), previous.float().log_softmax(-1)
    p = lp.exp()
    p.topk(2, dim=-1)
    (p * lp).sum(-1)
    (lq.exp() * (lq - lp)).sum(-1)


def kernel(name: str) -> Method:
    """All statistics with the KL by one of ours."""

    def method(logits: Tensor, previous: Tensor) -> None:
        slot = torch.arange(len(logits))
        with use(name):
            reduce(logits, Previous(previous, slot), frozenset({"prev_cur"}))

    return method


def reading(logits: Tensor, previous: Tensor) -> None:
    """A bound: both tensors are read once, and nothing else."""
    logits.sum()
    previous.sum()


def exponentials(logits: Tensor, previous: Tensor) -> None:
    """A bound in PyTorch: read once, one exponential per element, in chunks that fit the cache."""
    for part in chunks(logits):
        for tensor in (logits, previous):
            tensor[part].float().exp()


def methods() -> dict[str, Method]:
    """All that can be measured here, by name; the listing comes first."""
    ours = {name: kernel(name) for name in KERNELS if missing(name) is None}
    bounds = {"exponentials": exponentials, "reading": reading}
    return {"listing": listing, "log_softmax": log_softmax, **ours, **bounds}
