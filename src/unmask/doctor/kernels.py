"""The kernels: which one serves a device, and whether each agrees with plain PyTorch."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from unmask import kernels
from unmask.doctor.finding import Finding
from unmask.kernels import codes, layer, product
from unmask.kernels.check import disagreement
from unmask.models import packed

VOCABULARY = 126_464  # LLaDA's: a kernel may work on few tokens and fail on many
MENDS = {
    "native": "python -m unmask.kernels.build (needs a C++ compiler)",
    "triton": "pip install triton",
}


def kernels_on(device: torch.device) -> Iterator[Finding]:
    """The kernels that serve the device, and the ones that should."""
    yield from _reduction(device)
    if device.type == "cpu":
        yield _torchs_bits("products", "multiplies large weights", product.trouble())
        yield _torchs_bits("layers", "computes norms and rotations", layer.trouble())
        yield _packing(device)
        yield _codes()


def _torchs_bits(name: str, does: str, reason: str | None) -> Finding:
    """Whether the native kernel does what torch would do with the same bits, or why torch does."""
    if reason is None:
        return Finding(name, "ok", f"native {does}, with torch's bits")
    return Finding(name, "ok", f"torch {does}; native is not used: {reason}")


def _packing(device: torch.device) -> Finding:
    """Whether weights in bfloat16 are packed."""
    if packed.keeps_bits(torch.bfloat16, device):
        says = "weights in bfloat16 are packed, with torch's bits; --pack packs float32 too"
        return Finding("packing", "ok", says)
    reason = packed.trouble(torch.bfloat16, device) or "their products do not have torch's bits"
    return Finding("packing", "ok", f"weights in bfloat16 are not packed: {reason}")


def _codes() -> Finding:
    """Who multiplies by weights of 8 or 4 bits in bfloat16."""
    reason = codes.trouble()
    if reason is None:
        return Finding("8 and 4 bits", "ok", "native multiplies by them in bfloat16")
    return Finding("8 and 4 bits", "ok", f"they are widened in parts; native is not used: {reason}")


def _reduction(device: torch.device) -> Iterator[Finding]:
    """Who makes the pass over the logits."""
    serving, fastest = kernels.backend(str(device)), kernels.FASTEST.get(device.type, "torch")
    if serving == fastest:
        trouble = disagreement(kernels.kernel(serving).reduce_rows, device, VOCABULARY)
        if trouble is None:
            yield Finding("kernel", "ok", f"{serving} serves and agrees with plain PyTorch")
            return
        yield _fault(serving, f"{trouble} at {VOCABULARY} tokens")
        return
    reason = kernels.missing(fastest) or "it cannot read these tensors"
    if kernels.is_broken(fastest):
        yield _fault(fastest, reason)
    else:
        says = f"{serving} serves, since {fastest} is not usable: {reason}"
        yield Finding("kernel", "slow", says, MENDS.get(fastest, ""))


def _fault(name: str, reason: str) -> Finding:
    says = f"{name} disagrees with plain PyTorch: {reason}"
    return Finding("kernel", "fault", says, "report it, and set unmask.kernels.use('torch')")
