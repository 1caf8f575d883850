"""The second set of golden cases, to the token."""

import json

import pytest
import torch

from tests.paths import ROOT
from unmask.conformance import Report, run
from unmask.conformance.run import _run_case

GOLDEN = ROOT / "tests" / "golden" / "decoders-2"
PIECE = 50  # cases of one test
PIECES = [
    pytest.param(file, begin, marks=[pytest.mark.long] * bool(begin), id=f"{file.stem}-{begin}")
    for file in sorted([*GOLDEN.glob("reference_*.jsonl"), *GOLDEN.glob("upstream_*.jsonl")])
    for begin in range(0, len(file.read_text().splitlines()), PIECE)
]
# All cases run in float64. In float32 each kernel takes every sixth, and at least one of a file.
PASSES = [
    ("torch", torch.float64, 1, 0),
    pytest.param("torch", torch.float32, 6, 0, marks=pytest.mark.long),
    pytest.param("native", torch.float32, 6, 3, marks=pytest.mark.long),
]


@pytest.mark.parametrize(("kernel", "dtype", "every", "first"), PASSES, indirect=["kernel"])
@pytest.mark.parametrize(("file", "begin"), PIECES)
def test_every_golden_case_is_reproduced(file, begin, kernel, dtype, every, first):
    lines = file.read_text().splitlines()[begin : begin + PIECE]
    lines = lines[first::every] or lines[:1]
    report = Report()
    for line in lines:
        _run_case(json.loads(line), file.parent, (dtype,), report)
    assert [outcome for outcome in report.outcomes if outcome.status == "failed"] == []
    skipped = [outcome for outcome in report.outcomes if outcome.status == "known difference"]
    assert all("BUG" in outcome.case and outcome.reason for outcome in skipped)
    assert report.count("passed") == len(lines) - len(skipped)


def test_the_command_reads_cases_that_were_written_from_papers(tmp_path):
    for table in GOLDEN.glob("denoiser_*.npz"):
        (tmp_path / table.name).write_bytes(table.read_bytes())
    case = (GOLDEN / "reference_ce.jsonl").read_text().splitlines()[0]
    (tmp_path / "reference_ce.jsonl").write_text(case)
    assert run(tmp_path).count("passed") == 2
    changed = json.loads(case)
    changed["steps"][1]["tok"][0] ^= 1
    (tmp_path / "reference_ce.jsonl").write_text(json.dumps(changed))
    assert run(tmp_path).count("failed") == 2
