"""A model on this machine: does a batch give what its rows give alone, how fast, what fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from time import perf_counter

import torch

from unmask.decoding.api import decode, decode_many
from unmask.decoding.options import DecodingOptions
from unmask.doctor.finding import Finding, Status
from unmask.errors import UnmaskError
from unmask.models.architecture import Architecture
from unmask.models.caches import Cached
from unmask.models.denoiser import Canvas, ModelSpec
from unmask.models.describe import Description
from unmask.models.load import default_dtype
from unmask.models.memory import WIDTHS, free_memory, weight_bytes
from unmask.models.pretrained import Pretrained
from unmask.models.products import INSTRUCTIONS, multiplies
from unmask.models.stored import StoredModel
from unmask.text.session import Session

RULE, LENGTH = "confidence | top(4)", 8
PROMPTS = (5, 17, 9, 30, 12)  # tokens of the prompts of a batch
CANVAS = 128  # positions of the forward that is timed, if the context has as many
BATCHES, LENGTHS = (1, 8, 32), (512, 2048)
GIGA = 1e9


def examined(source: str, options: DecodingOptions, device: torch.device) -> Iterator[Finding]:
    """Batch invariance, speed and sizes of a model; what fails is a fault."""
    try:
        session = Session(source, options=options, device=device)
        free, outline = free_memory(device), _outline(session)
        longest = session.context or max(LENGTHS)
        if (needed := _allocated(session, outline)) > free:
            yield _too_large(session, needed, free)
            yield from fits(outline, free, session.options.quantize, longest)
            return
        model = session.model()
    except Exception as error:  # of any kind: a run would end there
        says = f"{source} cannot be loaded: {_reason(error)}"
        yield Finding(
            "model", "fault", says, f"'unmask models {source}' says more; or give another --model"
        )
        return
    assert isinstance(model, Pretrained)
    context = session.context or CANVAS
    cache = "block" if model.spec.block else "dual"
    checks: dict[str, Callable[[int], Finding]] = {
        "batches": partial(invariance, model),
        f"batches, {cache} cache": partial(invariance, Cached(model, cache)),
        "forward": partial(speed, model),
    }
    for name, check in checks.items():
        try:
            yield replace(check(context), name=name)
        except Exception as error:
            says = f"{session.name} cannot run here: {_reason(error)}"
            yield Finding(name, "fault", says, "give another --dtype, --device or --model")
    yield from fits(model, free, session.options.quantize, longest)


def _outline(session: Session) -> Pretrained:
    """The model without its weights, in the dtype in which it would be loaded."""
    known = session.checkpoint
    assert known is not None
    wanted = session.options.dtype or default_dtype(known.folder)
    dtype = getattr(torch, wanted) if wanted else _stored_dtype(known)
    with torch.device("meta"):
        return Pretrained(known.family.network(known.arch).to(dtype), known.spec)


def _stored_dtype(known: Description) -> torch.dtype:
    return StoredModel.open(known.folder, known.family, known.arch).dtype


def _allocated(session: Session, outline: Pretrained) -> float:
    """Bytes that loading takes; weights that stay mapped to their file take none."""
    known, kind = session.checkpoint, session.options.quantize
    assert known is not None
    mapped = kind is None and session.device.type == "cpu" and not session.options.pack
    if mapped and outline.dtype == _stored_dtype(known):
        return 0.0
    return _weights(outline, kind or _precision(outline))


def _too_large(session: Session, needed: float, free: int) -> Finding:
    precision = session.options.quantize or session.options.dtype or "its dtype"
    says = (
        f"{session.name} is not loaded: in {precision} its weights take {_size(needed)}, "
        f"and {_size(free)} are free"
    )
    return Finding("model", "fault", says, "see what fits below, or give another --model")


def _reason(error: Exception) -> str:
    """The first line of an error; the name of its kind where it is not one of ours."""
    first = (str(error).strip().splitlines() or [""])[0]
    return first if isinstance(error, UnmaskError) else f"{type(error).__name__}: {first}"


def invariance(model: Pretrained | Cached, context: int = CANVAS) -> Finding:
    """Whether five prompts of unequal length get in a batch what they get alone."""
    length = min(LENGTH, max(1, context // 2))
    counts = [max(1, min(count, context - length)) for count in PROMPTS]
    prompts = [_prompt(model.spec, count) for count in counts]
    together = decode_many(model, prompts, RULE, length=length, batch_size=len(prompts))
    alone = [decode(model, prompt, RULE, length=length) for prompt in prompts]
    same = sum(
        torch.equal(a.canvas, b.canvas) and a.nfe == b.nfe
        for a, b in zip(together, alone, strict=True)
    )
    dtype = (model.model if isinstance(model, Cached) else model).dtype
    says = f"{same} of {len(prompts)} prompts get in a batch what they get alone, in {_name(dtype)}"
    if same == len(prompts):
        return Finding("batches", "ok", says)
    return Finding("batches", "fault", says, "use float32, or load with exact=True, or batch 1")


def speed(model: Pretrained, context: int = CANVAS) -> Finding:
    """The time of a forward over one row, the best of three."""
    size = min(CANVAS, context)
    ids = torch.tensor([_prompt(model.spec, size)])
    whole, end = torch.ones_like(ids, dtype=torch.bool), torch.tensor([size])
    canvas = Canvas(ids, end, ~whole, whole, torch.tensor([0]), end, (0,))
    taken = []
    with torch.inference_mode():
        for _ in range(3):
            begin = perf_counter()
            model.head(model.trunk(canvas), torch.tensor([0]), torch.tensor([0])).cpu()
            taken.append(perf_counter() - begin)
    best = min(taken)
    says = f"{best * 1e3:.3g} ms for {size} positions, {size / best:,.0f} positions per second"
    if model.device.type == "cpu" and model.dtype in INSTRUCTIONS and not multiplies(model.dtype):
        says += (
            f"; this processor does not multiply {_name(model.dtype)}, so products are in float32"
        )
    return Finding("forward", "ok", says)


def fits(model: Pretrained, free: int, quantized: str | None, context: int) -> Iterator[Finding]:
    """For each precision: the memory of the weights, and the batches for which there is room."""
    arch = model.arch
    used = quantized or _precision(model)
    for name, width in WIDTHS.items():
        if width < 2 and arch.experts is not None:
            continue
        weights = _weights(model, name)
        sizes = [
            f"{max(batches)} x {length}"
            for length in sorted({min(length, context) for length in LENGTHS})
            if (batches := _batches(arch, length, max(width, 2), free - weights))
        ]
        listed = f"rows x tokens: {', '.join(sizes)}"
        room = f"room for {listed}" if sizes else "too large for the free memory"
        status: Status = "ok" if sizes or name != used else "slow"
        mend = "" if status == "ok" else "fewer bits (--quantize), a smaller model, or more memory"
        yield Finding(f"fits {name}", status, f"weights {_size(weights)}; {room}", mend)


def _batches(arch: Architecture, length: int, width: float, room: float) -> list[int]:
    return [batch for batch in BATCHES if _working(arch, batch, length, width) <= room]


def _name(dtype: torch.dtype) -> str:
    """As `--dtype` spells it."""
    return str(dtype).removeprefix("torch.")


def _precision(model: Pretrained) -> str:
    """The precision in the table with as many bytes as the model's dtype."""
    return "float32" if model.dtype.itemsize == 4 else "bfloat16"


def _weights(model: Pretrained, precision: str) -> int:
    """Bytes of the weights."""
    with torch.device("meta"):
        module = type(model.module)(model.arch)
    layers = sum(p.numel() for p in module.layers.parameters())
    others = sum(p.numel() for p in module.parameters()) - layers
    return weight_bytes(layers, others, precision)


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
