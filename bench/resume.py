"""Kill a sweep at random moments, resume it, and compare its store with an undisturbed one."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from unmask.lab.sweep.store import Store

SWEEP = [
    "sweep", "--task", "words,sort", "--rule", "confidence|swd({0,5})|eb({0.05,0.5})",
    "--block", "full,16", "--length", "32", "--limit", "150",
]  # fmt: skip
EXAMPLES = 2 * 4 * 2 * 150
CLOCK = ("seconds_", "memory_")  # how the names of fields begin that differ from run to run


def main() -> None:
    """Run the sweep without and with kills, and print the differences."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    random.seed(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        calm, rough = Path(folder, "calm.sqlite"), Path(folder, "rough.sqlite")
        start(calm, given.workers).wait()
        print(f"undisturbed: {finished(calm)} examples", flush=True)
        for target in sorted(random.sample(range(EXAMPLES - 100), given.kills)):
            kill_at(rough, target, given.workers)
            print(f"killed at {finished(rough)} examples", flush=True)
        code = start(rough, given.workers).wait()
        left, right = contents(calm), contents(rough)
        same = sum(left[key] == right.get(key) for key in left)
        print(f"resumed with exit code {code}; {same} of {len(left)} examples are equal, "
              f"{len(right.keys() - left.keys())} too many")  # fmt: skip
        raise SystemExit(code or same != EXAMPLES or len(right) != EXAMPLES)


def kill_at(file: Path, target: int, workers: int) -> None:
    """Start the sweep, and kill it with its workers when it has a given number of examples."""
    process = start(file, workers)
    while finished(file) < target and process.poll() is None:
        time.sleep(0.02)
    time.sleep(random.uniform(0.0, 0.2))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def start(file: Path, workers: int) -> subprocess.Popen[bytes]:
    """The sweep as a user starts it."""
    command = [sys.executable, "-m", "unmask", *SWEEP, "--workers", str(workers)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen([*command, "--store", str(file)], stdout=quiet, stderr=quiet,
                            start_new_session=True)  # fmt: skip


def finished(file: Path) -> int:
    """The number of answered examples."""
    if not file.is_file():
        return 0
    base = sqlite3.connect(file, timeout=60)
    try:
        query = "SELECT count(*) FROM examples WHERE answer IS NOT NULL"
        (count,) = base.execute(query).fetchone()
    except sqlite3.OperationalError:  # killed before there was a table
        count = 0
    base.close()
    return int(count)


def contents(file: Path) -> dict[tuple[str, str], object]:
    """All answers, without the fields that depend on the clock."""
    with Store(file) as store:
        return {
            (trial.key, row.ask.example): (
                {key: value for key, value in row.answer.items() if not key.startswith(CLOCK)},
                row.grade,
            )
            for trial in store.trials()
            for row in store.rows(trial)
        }


if __name__ == "__main__":
    main()
