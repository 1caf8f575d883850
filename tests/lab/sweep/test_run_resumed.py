"""A sweep that is killed goes on as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from tests.lab.sweep.test_run import contents

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
    "25",
]


def start(file):
    command = [sys.executable, "-m", "unmask", *SWEEP, "--store", str(file)]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # the other cores run other tests
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=one_thread,
    )


def finished(file):
    return len(contents(file)) if file.is_file() else 0


def kill_after(file, count):
    """Kill the sweep once it has stored so many examples."""
    process = start(file)
    end = time.monotonic() + 300
    while finished(file) < count and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    _, told = process.communicate()
    assert process.returncode == -signal.SIGKILL, told


def test_a_killed_sweep_ends_with_the_store_of_an_undisturbed_one(tmp_path):
    calm, rough = tmp_path / "calm.sqlite", tmp_path / "rough.sqlite"
    _, told = start(calm).communicate(timeout=300)
    assert finished(calm) == 50, told
    kill_after(rough, 3)
    kept = finished(rough)
    assert 3 <= kept < 50
    kill_after(rough, kept + 10)
    assert finished(rough) >= kept + 10
    output, told = start(rough).communicate(timeout=300)
    assert b"stored in" in output, told
    assert contents(rough) == contents(calm)
