"""Damaged files: an error in one line or the same answer, in little memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.paths import ROOT


@pytest.mark.hostile
@pytest.mark.parametrize("part", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_500_corruptions_end_in_a_line_and_change_no_answer_without_a_word(part):
    """In make test the first fifth of them."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.corruptions", str(part)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    outcomes = [(key, n) for each in result["counts"].values() for key, n in each.items()]
    assert sum(n for _, n in outcomes) == 500 // part
    bad = [key for key, _ in outcomes if key.endswith(("traceback", "CHANGED", "long message"))]
    assert not bad, f"{bad}\n{done.stderr}"
    assert (
        sum(n for key, n in outcomes if key.endswith("refused")) > 250 // part
    )  # the attack is real
    assert result["megabytes"] < 1000
