"""Runs the golden decoder cases of a folder, in float64 and float32."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from unmask.conformance.cases import plan_of
from unmask.conformance.golden_growth import PROMPT, growth_differences, longer_table
from unmask.conformance.golden_steps import golden_steps, row_differences
from unmask.conformance.models import folders, run_model
from unmask.conformance.plan import EOS, MASK, CasePlan, Skipped
from unmask.conformance.report import Report
from unmask.conformance.ties import Steps, tied
from unmask.conformance.units import check_units
from unmask.decoding.loop import decode_steps
from unmask.decoding.request import Request, infill_request, prompt_request
from unmask.decoding.results import Step
from unmask.errors import UnmaskError
from unmask.models.denoiser import Denoiser, ModelSpec
from unmask.models.toys.lookup import LookupDenoiser
from unmask.models.wrappers.guided import Guided

VOCABULARY = 61  # of the toy denoisers
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
    """Run every case of one file; the denoisers are in the same folder.

    A case that cannot be read has failed, and the others run.
    """
    for number, line in enumerate(file.read_text().splitlines(), 1):
        name = f"{file.name}, line {number}"
        try:
            case = json.loads(line)
            name = case["id"]
            _run_case(case, file.parent, dtypes, report)
        except KeyError as missing:
            report.add(name, "failed", f"the case has no {missing}")
        except (ValueError, TypeError, AttributeError) as error:  # an UnmaskError is a ValueError
            report.add(name, "failed", f"the case cannot be read: {error}")


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
    if plan.settings.growth is not None:
        return ""
    golden = [golden_steps(row, plan) for row in case.get("rows", [case])]
    written = [[step.written for step in steps] for steps in golden]
    return tied(written, lambda at, steps: _differences(case, plan, folder, at, steps), dtype)


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
    length = plan.length or case["config"]["gen_length"]
    requests = [_request(model.spec, row["prompt"], length, plan) for row in expected]
    steps: list[list[Step]] = [[] for _ in expected]
    for step in run_steps(model, requests):
        for key in step.keys:
            steps[key].append(step)
    for number, row in enumerate(expected):
        if plan.settings.growth is not None:
            yield from growth_differences(row, steps[number], number)
            continue
        yield from row_differences(row, steps[number], number, plan, len(expected) > 1)
    if dtype == torch.float64 and "cand" in case.get("steps", [{}])[0]:
        yield from _detail_differences(case, steps[0])


def _request(spec: ModelSpec, prompt: list[int], length: int, plan: CasePlan) -> Request:
    request = prompt_request(spec, prompt, length, plan.settings, plan.seed)
    if not plan.constraints:
        return request
    canvas = request.canvas.clone()
    for place, token in plan.constraints:
        canvas[len(prompt) + place] = token
    return infill_request(spec, canvas, plan.settings, plan.seed)


def _model(name: str, plan: CasePlan, folder: Path, dtype: torch.dtype) -> Denoiser:
    table = _lookup(folder / f"denoiser_{name}.npz", dtype, plan.shift, plan.stop_ids)
    model: Denoiser = table
    if plan.length is not None:
        place = longer_table(table.place, PROMPT + plan.length)
        model = LookupDenoiser(place, table.everywhere, table.near, table.spec, plan.shift)
    return Guided(model, plan.guidance) if plan.guidance else model


@cache
def _lookup(
    file: Path, dtype: torch.dtype, shift: bool, stop_ids: tuple[int, ...]
) -> LookupDenoiser:
    spec = ModelSpec(MASK, VOCABULARY, EOS, stop_ids, name=file.stem)
    return LookupDenoiser.load(file, spec, dtype, shift)


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
