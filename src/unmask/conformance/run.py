"""Runs the golden decoder cases of a folder, in float64 and float32."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from unmask.conformance.cases import EOS, CasePlan, Skipped, plan_of
from unmask.conformance.models import folders, run_model
from unmask.conformance.report import Report
from unmask.conformance.ties import Steps, tied
from unmask.conformance.units import check_units
from unmask.decoding.loop import decode_steps
from unmask.decoding.request import Request, prompt_request
from unmask.decoding.results import Step
from unmask.errors import UnmaskError
from unmask.models.denoiser import Denoiser, ModelSpec
from unmask.models.toys.lookup import LookupDenoiser
from unmask.models.wrappers.guided import Guided

MASK, VOCABULARY = 60, 61  # of the toy denoisers
KINDS = ("reference", "swd", "upstream")  # how the names of the files with cases begin
DTYPES = (torch.float64, torch.float32)


def run(folder: Path, dtypes: Sequence[torch.dtype] = DTYPES) -> Report:
    """Run every golden case of a folder."""
    files = sorted(file for kind in KINDS for file in folder.glob(f"{kind}_*.jsonl"))
    models = folders(folder)
    if not files and not models:
        raise UnmaskError(
            f"{folder} has no golden decoder cases (swd_*, reference_* or upstream_*.jsonl) and "
            "no golden checkpoints (config.json beside golden_*); give a folder that has them"
        )
    report = Report()
    for model in models:
        run_model(model, report)
    check_units(folder, report)
    for file in files:
        run_file(file, report, dtypes)
    return report


def run_file(file: Path, report: Report, dtypes: Sequence[torch.dtype] = DTYPES) -> None:
    """Run every case of one file; the denoisers are in the same folder."""
    for line in file.read_text().splitlines():
        _run_case(json.loads(line), file.parent, dtypes, report)


def _run_case(
    case: dict[str, Any], folder: Path, dtypes: Sequence[torch.dtype], report: Report
) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # form=literal warns, but these cases test it
            plan = plan_of(case, folder)
    except Skipped as reason:
        report.add(case["id"], reason.status, str(reason))
        return
    for dtype in dtypes:
        name = f"{case['id']} [{str(dtype).removeprefix('torch.')}]"
        try:
            differences = _differences(case, plan, folder, dtype)
            report.check(name, differences, partial(_tie, case, plan, folder, dtype))
        except UnmaskError as error:
            report.add(name, "failed", f"{type(error).__name__}: {error}")


def _together(model: Denoiser, requests: Sequence[Request]) -> Iterator[Step]:
    return decode_steps(model, requests, len(requests))


def _tie(case: dict[str, Any], plan: CasePlan, folder: Path, dtype: torch.dtype) -> str:
    """The proof that the case differs by exact ties alone, "" if it does not."""
    golden = [_golden_steps(row, plan.settings.block) for row in case.get("rows", [case])]
    return tied(golden, lambda at, steps: _differences(case, plan, folder, at, steps), dtype)


def _differences(
    case: dict[str, Any],
    plan: CasePlan,
    folder: Path,
    dtype: torch.dtype,
    run_steps: Steps = _together,
) -> Iterator[str]:
    """The differences from a golden case, in the order of the steps."""
    model = _model(case["denoiser"], plan, folder, dtype)
    expected = case.get("rows", [case])
    length = case["config"]["gen_length"]
    requests = [
        prompt_request(model.spec, row["prompt"], length, plan.settings, plan.seed)
        for row in expected
    ]
    steps: list[list[Step]] = [[] for _ in expected]
    for step in run_steps(model, requests):
        for key in step.keys:
            steps[key].append(step)
    for number, row in enumerate(expected):
        yield from _row_differences(row, steps[number], number, plan)
    if dtype == torch.float64 and "cand" in case.get("steps", [{}])[0]:
        yield from _detail_differences(case, steps[0])


def _model(name: str, plan: CasePlan, folder: Path, dtype: torch.dtype) -> Denoiser:
    model: Denoiser = _lookup(folder / f"denoiser_{name}.npz", dtype, plan.shift, plan.stop_ids)
    return Guided(model, plan.guidance) if plan.guidance else model


@cache
def _lookup(
    file: Path, dtype: torch.dtype, shift: bool, stop_ids: tuple[int, ...]
) -> LookupDenoiser:
    spec = ModelSpec(MASK, VOCABULARY, EOS, stop_ids, name=file.stem)
    return LookupDenoiser.load(file, spec, dtype, shift)


def _row_differences(
    row: dict[str, Any], steps: list[Step], number: int, plan: CasePlan
) -> Iterator[str]:
    leaves_masks = MASK in row["final_ids"]  # upstream stops at EOS and leaves the tail masked
    canvas = [*row["prompt"], *[MASK] * (len(row["final_ids"]) - len(row["prompt"]))]
    golden = _golden_steps(row, plan.settings.block)
    for index, step in enumerate(steps):
        at = step.keys.index(number)
        after = step.tokens[at].tolist()
        if leaves_masks:
            after = [
                MASK if filled else token
                for token, filled in zip(after, step.filled[at].tolist(), strict=True)
            ]
        written = {i: after[i] for i, token in enumerate(canvas) if token == MASK != after[i]}
        canvas = after
        if index >= len(golden):
            yield f"step {index}: upstream has ended, this build wrote {written}"
            return
        if written != golden[index]:
            yield f"step {index}: expected {golden[index]}, got {written}"
            return
    if len(steps) < len(golden):
        yield f"step {len(steps)}: expected {golden[len(steps)]}, this build has ended"
    if canvas != row["final_ids"]:
        yield f"final ids: expected {row['final_ids']}, got {canvas}"


def _golden_steps(row: dict[str, Any], block: int | None) -> list[dict[int, int]]:
    """The committed tokens by position, for each useful forward.

    Forwards over a complete block are left out. Engines run them to write a cache, unrolled loops
    because they do not check, and batches because another row is not complete.
    """
    begin, end = len(row["prompt"]), len(row["final_ids"])
    width = block or end - begin
    masked = set(range(begin, end))
    useful, current = [], 0
    for step in row["steps"]:
        written = dict(zip(step["pos"], step["tok"], strict=True))
        complete = not any((i - begin) // width == current for i in masked)
        if complete and written:
            current = (min(written) - begin) // width
        if written or not complete:
            useful.append(written)
        masked -= set(written)
    return useful


def _detail_differences(case: dict[str, Any], steps: list[Step]) -> Iterator[str]:
    """Differences in the scores of the candidates of each step, beyond a relative 1e-9."""
    for index, (golden, step) in enumerate(zip(case["steps"], steps, strict=True)):
        start, view, decision = int(step.start[0]), step.view, step.decision
        values = {
            "base": decision.base.value,
            "kl": view.instability(case["config"]["kl_dir"]),
            "value": decision.scores.value,
            "key": decision.scores.key,
            "entropy": view.raw_entropy,
        }
        candidates = [position - start for position in golden["cand"]]
        for name, value in values.items():
            want = torch.tensor([float(x) for x in golden[name]], dtype=torch.float64)
            have = value[0, candidates]
            if not torch.allclose(have, want, rtol=1e-9, atol=1e-12):
                worst = int((have - want).abs().argmax())
                yield (
                    f"step {index}: {name} of position {golden['cand'][worst]}: "
                    f"expected {float(want[worst])!r}, got {float(have[worst])!r}"
                )
                return
