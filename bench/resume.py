"""Kill a sweep at random moments, resume it, and compare its store with an undisturbed one."""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from unmask.lab.store import Store

SWEEP = [
    "sweep",
    "--task",
    "words,sort",
    "--rule",
    "confidence|swd({0,5})|eb({0.05,0.5})",
    "--block",
    "full,16",
    "--length",
    "32",
    "--limit",
    "150",
]
CLOCK = {"seconds_model", "seconds_decision", "seconds_total", "memory_mean", "memory_peak"}


def main() -> None:
    """Run the sweep in peace, then with kills, and print what differs."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    random.seed(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        calm, rough = Path(folder, "calm.sqlite"), Path(folder, "rough.sqlite")
        first, total = timed(calm, given.workers)
        print(f"undisturbed: {len(contents(calm))} examples in {total:.1f} s, first at {first:.1f}")
        for kill in range(given.kills):
            process = start(rough, given.workers)
            wait = random.uniform(0.7 * first, first + 2 * (total - first) / given.kills)
            try:
                process.wait(wait)
                print(f"kill {kill + 1}: it had ended")
            except subprocess.TimeoutExpired:
                kill_all(process)
                kept = len(contents(rough))
                print(f"kill {kill + 1} after {wait:.1f} s: {kept} examples kept", flush=True)
        code = start(rough, given.workers).wait()
        left, right = contents(calm), contents(rough)
        same = sum(left[key] == right.get(key) for key in left)
        print(f"resumed with exit code {code}; {same} of {len(left)} examples are equal, "
              f"{len(right.keys() - left.keys())} too many")  # fmt: skip
        raise SystemExit(code or same != len(left) or len(right) != len(left))


def timed(file: Path, workers: int) -> tuple[float, float]:
    """Seconds until the first example is stored, and until all are."""
    begin, first = time.perf_counter(), 0.0
    process = start(file, workers)
    while process.poll() is None:
        time.sleep(0.05)
        if not first and contents(file):
            first = time.perf_counter() - begin
    return first, time.perf_counter() - begin


def start(file: Path, workers: int) -> subprocess.Popen[bytes]:
    """The sweep as a user starts it."""
    command = [sys.executable, "-m", "unmask", *SWEEP, "--workers", str(workers)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen([*command, "--store", str(file)], stdout=quiet, stderr=quiet,
                            start_new_session=True)  # fmt: skip


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """The command and its workers, with no chance to tidy up."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def contents(file: Path) -> dict[tuple[str, str], object]:
    """All that does not depend on the clock."""
    if not file.is_file():
        return {}
    with Store(file) as store:
        return {
            (trial.key, row.ask.example): (
                {key: value for key, value in row.answer.items() if key not in CLOCK},
                row.grade,
            )
            for trial in store.trials()
            for row in store.rows(trial)
        }


if __name__ == "__main__":
    main()
