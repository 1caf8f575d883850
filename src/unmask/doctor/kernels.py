"""The kernels: which one serves a device, and whether each agrees with plain PyTorch."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from unmask import kernels
from unmask.doctor.finding import Finding
from unmask.kernels import codes, layer, native, product
from unmask.kernels.check import disagreement
from unmask.kernels.common import OTHER_BITS, Unavailable
from unmask.kernels.native import BUILD, LIBRARY
from unmask.models import packed

VOCABULARY = 126_464  # LLaDA's: a kernel may work on few tokens and fail on many
REBUILD = f"{BUILD} (needs a C++ compiler)"
MENDS = {"native": REBUILD, "triton": "pip install triton"}
WITHOUT = {"native": f"delete {LIBRARY}", "triton": "uninstall triton"}
NOTHING = "nothing to do on this processor"


def kernels_on(device: torch.device) -> Iterator[Finding]:
    """The kernels that serve the device, and the ones that should."""
    yield from _reduction(device)
    if device.type != "cpu":
        return
    products = "nothing is wrong; in float32 --pack is another way, which moves results by rounding"
    layers = "nothing is wrong; constraints.txt names the tested torch"
    yield _torchs_bits("products", "multiplies large weights", product.trouble(), products)
    yield _torchs_bits("layers", "computes norms and rotations", layer.trouble(), layers)
    yield _packing(device)
    yield _codes()


def _torchs_bits(name: str, does: str, reason: str | None, advice: str) -> Finding:
    """Whether the native kernel does what torch would do with the same bits, or why torch does."""
    if reason is None:
        return Finding(name, "ok", f"native {does}, with torch's bits on one thread")
    if _unusable():
        return Finding(name, "slow", f"torch {does}, since native is not usable", REBUILD)
    says = f"torch {does}; native is not used: {reason}"
    return Finding(name, "ok", says, advice if reason.startswith(OTHER_BITS) else NOTHING)


def _packing(device: torch.device) -> Finding:
    """Whether weights in bfloat16 are packed."""
    if packed.keeps_bits(torch.bfloat16, device):
        says = "weights in bfloat16 are packed, with torch's bits; --pack packs float32 too"
        return Finding("packing", "ok", says)
    reason = packed.trouble(torch.bfloat16, device) or "their products do not have torch's bits"
    mend = f"{NOTHING}; --pack packs float32"
    return Finding("packing", "ok", f"weights in bfloat16 are not packed: {reason}", mend)


def _codes() -> Finding:
    """Who multiplies by weights of 8 or 4 bits in bfloat16."""
    name, reason = "8 and 4 bits", codes.trouble()
    if reason is None:
        return Finding(name, "ok", "native multiplies by them in bfloat16")
    if _unusable():
        return Finding(
            name, "slow", "they are widened in parts, since native is not usable", REBUILD
        )
    says = f"they are widened in parts; native is not used: {reason}"
    if "wrong" in reason:
        return Finding(
            name, "fault", says, f"report it; results are right, but slower; or {REBUILD}"
        )
    return Finding(name, "ok", says, NOTHING)


def _unusable() -> bool:
    """Whether the C++ library cannot be loaded."""
    try:
        native.library()
    except Unavailable:
        return True
    return False


def _reduction(device: torch.device) -> Iterator[Finding]:
    """Who makes the pass over the logits."""
    serving, fastest = kernels.backend(str(device)), kernels.FASTEST.get(device.type, "torch")
    if serving == fastest:
        trouble = disagreement(kernels.kernel(serving).reduce_rows, device, VOCABULARY)
        if trouble is None:
            yield Finding("kernel", "ok", f"{serving} serves and agrees with plain PyTorch")
            return
        says = f"{serving} disagrees with plain PyTorch: {trouble} at {VOCABULARY} tokens"
        mend = "report it; until then unmask.kernels.use('torch') in Python"
        mend += f", or {WITHOUT[serving]}" if serving in WITHOUT else ""
        yield Finding("kernel", "fault", says, mend)
        return
    reason = kernels.missing(fastest) or "it cannot read these tensors"
    if kernels.is_broken(fastest):
        says = f"{fastest} disagrees with plain PyTorch, which does its work: {reason}"
        mend = f"report it; results are right, but slower; {MENDS[fastest]} may mend it"
        yield Finding("kernel", "fault", says, mend)
    else:
        reason = reason.removesuffix(f": {BUILD}")
        says = f"{serving} serves, since {fastest} is not usable: {reason}"
        yield Finding("kernel", "slow", says, MENDS.get(fastest, ""))
