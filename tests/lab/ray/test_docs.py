"""The commands of docs/ray.md: two of them are run by the tests of sweeps and of the server."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

from tests.lab.ray.commands import COMMANDS, ROOT, command_of


def test_every_command_of_the_page_is_run_by_a_test():
    assert [shlex.split(each)[:2] for each in COMMANDS] == [
        ["unmask", "sweep"],  # test_ray_sweeps.py
        ["python", "examples/ray_sweep.py"],  # below
        ["unmask", "serve"],  # test_ray_serve.py
    ]


def test_the_example_prints_a_table(address, tmp_path):
    finished = subprocess.run(
        [sys.executable, *command_of("examples/ray_sweep.py"), tmp_path / "store.sqlite"],
        cwd=ROOT,
        env={**os.environ, "RAY_ADDRESS": address},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr.count("done: words") == 2
    assert [line.split()[1] for line in finished.stdout.splitlines()[1:]] == [
        "confidence|eb(0.1)", "confidence|swd(5)|eb(0.1)",
    ]  # fmt: skip
