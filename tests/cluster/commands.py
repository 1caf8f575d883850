"""`unmask` in a process of its own, and the workers of this test's cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil

SWEEP = ["sweep", "--task", "words", "--rule", "confidence|swd({0,5})|eb(0.1)", "--block", "full",
         "--length", "24"]  # fmt: skip


def start(*arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", "unmask", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )


def done(process, seconds=240):
    """What it printed; it must end by itself."""
    try:
        output, told = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        output, told = process.communicate()
        raise AssertionError(f"not done after {seconds} s: {told}") from None
    return process.returncode, output, told


def wait_for(condition, seconds=120):
    """What the condition gives as soon as it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
    return found


def workers(title="ray::Worker"):
    """Processes of the cluster that this process has begun, by what they are doing."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.cmdline() and process.cmdline()[0].startswith(title):
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found
