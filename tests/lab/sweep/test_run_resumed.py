"""A sweep that is killed goes on as if nothing had happened."""

from __future__ import annotations

import os
import signal
import time

from tests.forked import Fork
from tests.lab.sweep.test_run import contents
from unmask.cli import main

SWEEP = [
    "sweep",
    "--task",
    "words",
    "--rule",
    "confidence|swd({0,5})|eb(0.1)",
    "--block",
    "full",
    "--length",
    "24",
    "--limit",
    "20",
]


def sweep(file):
    return [*SWEEP, "--store", str(file)]


def finished(file):
    return len(contents(file)) if file.is_file() else 0


def kill_after(file, count):
    """Start the sweep in a process of its own and kill it once it has stored so many examples."""
    process = Fork("-m", "unmask", *sweep(file))
    end = time.monotonic() + 300
    while finished(file) < count and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    _, told = process.communicate()
    assert process.returncode == -signal.SIGKILL, told


def test_a_killed_sweep_ends_with_the_store_of_an_undisturbed_one(tmp_path, capsys):
    calm, rough = tmp_path / "calm.sqlite", tmp_path / "rough.sqlite"
    kill_after(rough, 3)
    kept = finished(rough)
    assert 3 <= kept < 40
    assert main(sweep(rough)) == 0
    assert main(sweep(calm)) == 0
    assert "stored in" in capsys.readouterr().out
    assert contents(rough) == contents(calm)
