"""Forged configs: both commands work or print one line, in little memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.paths import ROOT


@pytest.mark.hostile
@pytest.mark.parametrize("part", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_forged_configs_end_in_one_line_without_a_traceback(part):
    """In make test every fourth of them."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.forged_configs", str(part)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    outcomes = result["outcomes"]
    assert len(outcomes) >= 190 // part
    assert [each for each in outcomes.items() if each[1] not in ("ok", "refused")] == []
    assert list(outcomes.values()).count("refused") > 140 // part  # the attack is real
    assert result["megabytes"] < 1000
