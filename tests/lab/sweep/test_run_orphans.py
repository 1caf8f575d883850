"""Workers end with the process that started them, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.paths import ROOT

CODE = """
import multiprocessing, os, sys, time
from unmask.lab.sweep.run import end_with_parent

def work():
    end_with_parent()
    print(os.getpid(), flush=True)
    time.sleep(120)

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=work)
    process.start()
    process.join()
"""


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_worker_does_not_outlive_its_parent(tmp_path, how):
    script = tmp_path / "parent.py"
    script.write_text(CODE)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    parent = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, env=environment
    )
    worker = int(parent.stdout.readline())
    assert runs(worker)
    parent.send_signal(how)
    parent.wait(10)
    parent.stdout.close()
    end = time.monotonic() + 10
    while runs(worker) and time.monotonic() < end:
        time.sleep(0.05)
    assert not runs(worker)
