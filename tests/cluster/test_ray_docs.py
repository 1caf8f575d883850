"""The commands of docs/ray.md and its example do what the page says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.commands import done, start

pytestmark = pytest.mark.xdist_group("ray")
ROOT = Path(__file__).parents[2]
COMMANDS = re.findall(r"```sh\n(.*?)\n```", (ROOT / "docs/ray.md").read_text(), re.DOTALL)


def command_of(name):
    (found,) = [shlex.split(each) for each in COMMANDS if name in each]
    return found


def test_the_page_has_three_commands():
    """The third, `unmask serve`, is run by test_ray_serve.py."""
    assert [shlex.split(each)[1] for each in COMMANDS] == [
        "sweep", "examples/ray_sweep.py", "serve",
    ]  # fmt: skip


def test_the_sweep_of_the_page_runs_where_ray_address_says(address, tmp_path):
    program, *arguments = command_of("unmask sweep")
    assert program == "unmask"
    file = tmp_path / "store.sqlite"
    code, output, told = done(start(*arguments, "--store", file, RAY_ADDRESS=address))
    assert code == 0, told
    assert "confidence|swd(5)|eb(0.1)" in output
    assert f"kept in {file}" in output
    assert told.count("done: words") == 2


def test_the_example_prints_a_table_and_decodes_nothing_twice(address, tmp_path):
    program, *arguments = command_of("examples/ray_sweep.py")
    assert program == "python"
    outputs = []
    for _ in range(2):
        found = subprocess.run(
            [sys.executable, *arguments, tmp_path / "store.sqlite"],
            cwd=ROOT,
            env={**os.environ, "RAY_ADDRESS": address},
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert found.returncode == 0, found.stderr
        outputs.append((found.stdout, found.stderr.count("done:")))
    (first, begun), (second, again) = outputs
    assert first == second
    assert (begun, again) == (2, 0)
    assert "confidence|swd(5)|eb(0.1)" in first
