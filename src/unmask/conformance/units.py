"""Small numeric cases of the golden folder: divergences, modulation, selection, schedules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unmask.conformance.golden_growth import longer_canvas, longer_table
from unmask.conformance.report import Report, read_golden
from unmask.decoding.sampling import gumbel_max
from unmask.kernels.reduce import Previous, reduce
from unmask.models.denoiser import Canvas, ModelSpec
from unmask.models.function import from_function
from unmask.models.toys.lookup import LookupDenoiser
from unmask.rules.registry import kind_named
from unmask.rules.schedules import Static, Timesteps
from unmask.rules.stability import Stability
from unmask.rules.view import BOTH_KL, Progress, Scores, View

Check = Callable[[dict[str, Any]], Iterator[tuple[str, Any, Any]]]  # name, value, golden value


def check_units(folder: Path, report: Report) -> None:
    """Run units.json, schedules.json and the checks of the toy denoisers, if they exist."""
    units = read_golden(folder / "units.json") or {}
    for name, check in _UNITS.items():
        _run(report, f"units_{name}", units.get(name, []), check)
    schedules = read_golden(folder / "schedules.json") or {}
    for name, schedule in _SCHEDULES.items():
        _run(report, "schedules", schedules.get(name, []), schedule)
    denoisers = read_golden(folder / "denoiser_check.json") or []
    _run(report, "denoiser", denoisers, lambda case: _denoiser(case, folder))
    longer = read_golden(folder / "denoiser_ext_check.json") or []
    prompts = read_golden(folder / "prompts.json") or {}
    longer = [{**case, "ids": longer_canvas(case["input"], prompts)} for case in longer]
    _run(report, "denoiser_ext", longer, lambda case: _denoiser(case, folder))


def plain_view(masked: Tensor, entropy: Tensor, **fields: Any) -> View:
    """A view of one window with the given fields; all others are zero."""
    zeros, zero = torch.zeros_like(entropy), torch.zeros(len(masked), dtype=torch.int64)
    progress = Progress(
        step=zero,
        opened=masked.sum(-1),
        num_windows=zero + 1,
        offset=zero,
        known=~masked,
        answer_length=zero + masked.shape[-1],
        window=zero,
    )
    view = View(
        masked=masked,
        token=torch.zeros(masked.shape, dtype=torch.int64),
        confidence=zeros,
        margin=zeros,
        entropy=entropy,
        raw_entropy=entropy,
        seen=torch.ones_like(masked),
        kl_prev_cur=zeros,
        kl_cur_prev=zeros,
        revocable=torch.zeros_like(masked),
        revoked_times=torch.zeros(masked.shape, dtype=torch.int64),
        progress=progress,
    )
    return replace(view, **fields)


def _kl(case: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    previous, current = _row(case["logits_prev"]), _row(case["logits_cur"])
    stats = reduce(current, Previous(previous, torch.tensor([0])), BOTH_KL)
    yield "token", int(stats.token), case["token"]
    for name in ("confidence", "margin", "entropy", "kl_prev_cur", "kl_cur_prev"):
        yield name, float(getattr(stats, name)), float(case[name])


def _uniform(case: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    logits = torch.zeros(1, case["V"], dtype=torch.float64)
    logits[0, 0] = float(case["spike_logit"])
    stats = reduce(logits, None, BOTH_KL, uniform_start=True)
    yield "confidence", float(stats.confidence), case["confidence"]
    yield "entropy", float(stats.entropy), case["entropy"]
    wanted = {"prev_cur": case["kl_uniform_cur"], "cur_prev": case["kl_cur_uniform"]}
    for kl, value in wanted.items():
        divergence = getattr(stats, f"kl_{kl}")
        yield f"KL {kl}", float(divergence), max(0.0, value)
        key = stats.confidence.log() - 5 * divergence
        yield f"key {kl}", float(key), case[f"log_confidence_key_lam5_{kl}"]


def _modulate(case: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    base = _row(case["base"])
    kl = _row(case["kl"])
    entropy = case["metric"] == "entropy"
    view = plain_view(torch.ones_like(base, dtype=torch.bool), -base, kl_prev_cur=kl)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # form=literal warns, but these cases test it
        part = Stability(case["lam"], start="skip", form=case["form"] if entropy else "additive")
    scores = part(view, Scores.log_utility(base) if entropy else Scores.probability(base))
    yield "value", scores.value[0].tolist(), [float(x) for x in case["value"]]
    if case["lam"]:
        yield "key", scores.key[0].tolist(), [float(x) for x in case["key"]]
    yield "order", scores.key[0].sort(descending=True, stable=True).indices.tolist(), case["order"]


def _select(case: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    entropy = _row(case["entropy"])
    view = plain_view(torch.ones_like(entropy, dtype=torch.bool), entropy)
    scores = Scores(_row(case["key"]), _row(case["value"]))
    knobs = {name: knob for name, knob in case["sel"].items() if name != "policy"}
    name = "top" if case["sel"]["policy"] == "topk" else case["sel"]["policy"]
    chosen = kind_named(name).make(**knobs)(view, scores)
    yield "chosen", chosen[0].nonzero()[:, 0].tolist(), sorted(case["chosen"])


def _gumbel(case: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    logits = torch.tensor(case["logits"], dtype=torch.float64)
    noise = torch.tensor(case["uniform_noise"], dtype=torch.float64)
    heat = case["temperature"]
    drawn = gumbel_max(logits / heat, noise) if heat else logits.argmax(-1)
    yield "token", drawn.tolist(), case["x0"]
    stats = reduce(logits, tokens=drawn)
    yield "confidence", stats.confidence.tolist(), case["x0_raw_softmax_confidence"]


def _shift(case: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    raw = torch.tensor(case["raw"])
    model = from_function(
        lambda ids: raw.expand(len(ids), -1, -1), mask_id=0, vocab_size=raw.shape[-1], shift=True
    )
    length = len(raw)
    hidden = model.trunk(_canvas(torch.zeros(1, length, dtype=torch.int64)))
    rows, places = torch.zeros(length, dtype=torch.int64), torch.arange(length)
    yield "shifted", model.head(hidden, rows, places).tolist(), case["shifted"]


def _llada_counts(case: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    # Counts of 0 are forwards over a filled canvas, which this build does not run.
    wanted = [count for count in case["counts"] if count]
    yield "counts", _counts(Static(case["steps"]), case["masked"]), wanted


def _dream_counts(case: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    wanted = list(case["counts"])
    while wanted and not wanted[-1]:
        wanted.pop()
    yield "counts", _counts(Timesteps(case["steps"], case["eps"]), case["masked"]), wanted


def _counts(select: Static | Timesteps, masks: int) -> list[int]:
    """The number of positions that a schedule takes in each step."""
    masked = torch.ones(1, masks, dtype=torch.bool)
    view = plain_view(masked, torch.zeros(1, masks, dtype=torch.float64))
    scores, counts, step = Scores.log_utility(view.entropy), [], 0
    while bool(masked.any()):
        progress = replace(view.progress, step=torch.tensor([step]))
        chosen = select(replace(view, masked=masked, progress=progress), scores)
        counts.append(int(chosen.sum()))
        masked, step = masked & ~chosen, step + 1
    return counts


def _denoiser(case: dict[str, Any], folder: Path) -> Iterator[tuple[str, Any, Any]]:
    spec = ModelSpec(60, 61, 59)
    model = LookupDenoiser.load(folder / f"denoiser_{case['denoiser']}.npz", spec)
    model.place = longer_table(model.place, len(case["ids"]))
    logits = model.trunk(_canvas(torch.tensor([case["ids"]]))).states[0]
    exact = np.rint((logits * 4096).numpy()).astype(np.int64)
    yield "sum", int(exact.sum()), case["sum_q"]
    yield "sum of magnitudes", int(np.abs(exact).sum()), case["sum_abs_q"]
    if "eos_q_rows_48_to_79" in case:
        yield "EOS", exact[48:80, spec.eos_id].tolist(), case["eos_q_rows_48_to_79"]
    for name in (key for key in case if key.startswith("row")):
        wanted = case[name]
        yield name, exact[int(name[3:].removesuffix("_q"))][: len(wanted)].tolist(), wanted
    if "argmax_gen" in case:
        yield "argmax", logits[-len(case["argmax_gen"]) :].argmax(-1).tolist(), case["argmax_gen"]


_UNITS: dict[str, Check] = {
    "kl": _kl,
    "uniform": _uniform,
    "modulate": _modulate,
    "select": _select,
    "gumbel": _gumbel,
    "shift": _shift,
}
_SCHEDULES: dict[str, Check] = {
    "llada_get_num_transfer_tokens": _llada_counts,
    "dream_maskgit_counts": _dream_counts,
}


def _run(report: Report, family: str, cases: list[dict[str, Any]], check: Check) -> None:
    for number, case in enumerate(cases):
        name = f"{family}/{case.get('name', number)}"
        wrong = (
            f"{what}: expected {wanted}, got {value}"
            for what, value, wanted in check(case)
            if not _same(value, wanted)
        )
        report.check(name, wrong)


def _same(value: Any, wanted: Any) -> bool:
    first = wanted[0] if isinstance(wanted, list) and wanted else wanted
    if isinstance(first, float):
        return bool(np.allclose(value, wanted, rtol=1e-9, atol=1e-12))
    return bool(value == wanted)


def _row(numbers: list[Any]) -> Tensor:
    return torch.tensor([[float(x) for x in numbers]], dtype=torch.float64)


def _canvas(tokens: Tensor) -> Canvas:
    size = torch.tensor([tokens.shape[-1]])
    given = torch.ones_like(tokens, dtype=torch.bool)
    return Canvas(tokens, size, ~given, given, torch.zeros_like(size), size, (0,))
