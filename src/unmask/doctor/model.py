"""A model on this machine: does a batch give what its rows give alone, how fast, what fits."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import torch

from unmask.decoding.api import decode, decode_many
from unmask.doctor.finding import Finding, Status
from unmask.models.architecture import Architecture
from unmask.models.caches import Cached
from unmask.models.denoiser import Canvas, ModelSpec
from unmask.models.pretrained import Pretrained
from unmask.models.products import INSTRUCTIONS, multiplies
from unmask.text.session import Session

RULE, LENGTH = "confidence | top(4)", 8
PROMPTS = (5, 17, 9, 30, 12)  # tokens of the prompts of a batch
CANVAS = 128  # positions of the forward that is timed
WIDTHS = {"float32": 4.0, "bfloat16": 2.0, "int8": 1.0, "int4": 0.5625}  # bytes of a weight
BATCHES, LENGTHS = (1, 8, 32), (512, 2048)
GIGA = 1e9


def examined(session: Session, free: int) -> Iterator[Finding]:
    """Batch invariance, speed and sizes of a session's model."""
    model = session.model()
    assert isinstance(model, Pretrained)
    yield invariance(model)
    yield invariance(model, "block" if model.spec.block else "dual")
    yield speed(model)
    yield from fits(model, free, session.options.quantize)


def invariance(model: Pretrained, cache: str | None = None) -> Finding:
    """Whether five prompts of unequal length get in a batch what they get alone."""
    used = model if cache is None else Cached(model, cache)
    prompts = [_prompt(model.spec, count) for count in PROMPTS]
    together = decode_many(used, prompts, RULE, length=LENGTH, batch_size=len(prompts))
    alone = [decode(used, prompt, RULE, length=LENGTH) for prompt in prompts]
    same = sum(
        torch.equal(a.canvas, b.canvas) and a.nfe == b.nfe
        for a, b in zip(together, alone, strict=True)
    )
    name = "batches" if cache is None else f"batches, {cache} cache"
    says = f"{same} of {len(prompts)} prompts get in a batch what they get alone, in {model.dtype}"
    if same == len(prompts):
        return Finding(name, "ok", says)
    return Finding(name, "fault", says, "use float32, or load with exact=True, or batch 1")


def speed(model: Pretrained) -> Finding:
    """The time of a forward over one row, the best of three."""
    ids = torch.tensor([_prompt(model.spec, CANVAS)])
    whole, end = torch.ones_like(ids, dtype=torch.bool), torch.tensor([CANVAS])
    canvas = Canvas(ids, end, ~whole, whole, torch.tensor([0]), end, (0,))
    taken = []
    with torch.inference_mode():
        for _ in range(3):
            begin = perf_counter()
            model.head(model.trunk(canvas), torch.tensor([0]), torch.tensor([0])).cpu()
            taken.append(perf_counter() - begin)
    best = min(taken)
    says = f"{best * 1e3:.3g} ms for {CANVAS} positions, {CANVAS / best:,.0f} positions per second"
    if model.device.type == "cpu" and model.dtype in INSTRUCTIONS and not multiplies(model.dtype):
        says += f"; this processor does not multiply {model.dtype}, so products are in float32"
    return Finding("forward", "ok", says)


def fits(model: Pretrained, free: int, quantized: str | None) -> Iterator[Finding]:
    """For each precision: the memory of the weights, and the batches for which there is room."""
    arch = model.arch
    for name, width in WIDTHS.items():
        if width < 2 and arch.experts is not None:
            continue
        weights = _weights(model, width)
        sizes = [
            f"{batch} x {length}"
            for length in LENGTHS
            for batch in BATCHES
            if weights + _working(arch, batch, length, max(width, 2)) <= free
        ]
        listed = f"rows x tokens: {', '.join(sizes)}"
        room = f"room for {listed}" if sizes else "too large for the free memory"
        status: Status = "ok" if sizes or name != (quantized or "bfloat16") else "slow"
        mend = "" if status == "ok" else "--quantize int4, a smaller model or a larger machine"
        yield Finding(f"fits {name}", status, f"weights {_size(weights)}; {room}", mend)


def _weights(model: Pretrained, width: float) -> float:
    """Bytes of the weights; embedding and head are never quantised."""
    with torch.device("meta"):
        module = type(model.module)(model.arch)
    layers = sum(p.numel() for p in module.layers.parameters())
    others = sum(p.numel() for p in module.parameters()) - layers
    return layers * width + others * max(width, 2)


def _working(arch: Architecture, batch: int, length: int, width: float) -> float:
    """An estimate of what a forward and the history of one block of 32 take beside the weights."""
    experts = arch.experts
    wide = max(arch.mlp, experts.width * experts.top_k if experts else 0)
    states = batch * length * (8 * arch.hidden + 3 * wide) * width
    return states + 2 * batch * 32 * arch.vocab_size * width


def _size(count: float) -> str:
    return f"{count / GIGA:.3g} GB" if count >= 1e8 else f"{count / 1e6:.3g} MB"


def _prompt(spec: ModelSpec, count: int) -> list[int]:
    """Ordinary tokens; none of them is special."""
    special = {spec.mask_id, *spec.stop_ids}
    plain = [token for token in range(min(spec.vocab_size, 1000)) if token not in special]
    return [plain[(7 * place + count) % len(plain)] for place in range(count)]
