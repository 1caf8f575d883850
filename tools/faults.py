"""Plants one fault at a time in a copy of the tree and says which test catches it.

    python tools/faults.py                      # every fault: an hour on two cores
    python tools/faults.py swd-sign lost-row    # these two
    python tools/faults.py --tree ../old --table old.json --output old.jsonl

The tests nearest to a fault run first, then the rest of the suite. A test that also fails without
the fault counts for nothing. The exit status is the number of faults that no test catches.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from tools.fault_table import FAULTS, Fault

ROOT = Path(__file__).parent.parent
PACKAGE = Path("src", "unmask")
LEFT_OUT = (".git", ".venv*", ".hypothesis", ".*_cache", "__pycache__", "build", "dist")
SECONDS = 3600  # a suite that takes longer counts as hanging
_FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """The result of one fault."""

    name: str
    caught: bool
    test: str  # the test that failed, without its parameters
    near: bool  # the test is among the nearest to the fault
    seconds: float

    def __str__(self) -> str:
        where = "" if self.near or not self.caught else " (far)"
        verdict = f"caught by {self.test}{where}" if self.caught else "MISSED"
        return f"{self.name:<28} {self.seconds:6.0f} s  {verdict}"


class Copy:
    """A copy of a tree in which faults are planted and tests are run."""

    def __init__(self, tree: Path, folder: Path, python: str, workers: int) -> None:
        self.folder, self.python, self.workers = folder / "tree", python, workers
        shutil.copytree(tree, self.folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
        self.broken: set[str] = set()  # tests that fail without any fault
        self._stamp = 10**9

    def run(self, fault: Fault, nearest: bool = False) -> Outcome:
        """Plant a fault, run the tests until one fails, and take the fault out again.

        With `nearest`, the rest of the suite is not run.
        """
        file = self.folder / PACKAGE / fault.file
        clean = file.read_text(encoding="utf-8")
        begin = time.perf_counter()
        nearby = tuple(path for path in fault.tests if (self.folder / path).exists())
        turns = [nearby[:1], nearby[1:], () if nearest else ("tests",)]
        self._write(file, planted(clean, fault))
        try:
            for turn, tests in enumerate(turns):
                failed = self.failing(tests, nearby if turn == 2 else nearby[:turn])
                if failed:
                    seconds = time.perf_counter() - begin
                    return Outcome(fault.name, True, failed[0], turn < 2, seconds)
        finally:
            self._write(file, clean)
        return Outcome(fault.name, False, "", False, time.perf_counter() - begin)

    def failing(
        self, tests: Sequence[str], ignored: Sequence[str] = (), every: bool = False
    ) -> list[str]:
        """The first of these tests that fails, or every one; none where all pass."""
        if not tests:
            return []
        command = [self.python, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider"]
        command += [] if every else ["-x"]
        command += ["-n", str(self.workers)] if self.workers > 1 and tests == ("tests",) else []
        command += [f"--ignore={path}" for path in ignored]
        command += [f"--deselect={test}" for test in self.broken]
        process = subprocess.Popen(
            [*command, *tests],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder / "src")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return ["hang"]
        if process.returncode in (0, 5):  # 5: nothing was collected
            return []
        failed = list(dict.fromkeys(_FAILED.findall(output)))
        return failed or [f"pytest itself: {output.strip().splitlines()[-1]}"]

    def _write(self, file: Path, text: str) -> None:
        """Each text with a time of its own: Python knows bytecode by the second and the size."""
        file.write_text(text, encoding="utf-8")
        self._stamp += 10
        os.utime(file, (self._stamp, self._stamp))


def planted(text: str, fault: Fault) -> str:
    """The text with the fault; raises unless the old text occurs exactly once."""
    count = text.count(fault.old)
    if count != 1:
        raise LookupError(
            f"{fault.name}: {fault.file} holds {fault.old!r} {count} times, not once; write the "
            "present text into tools/fault_table"
        )
    return text.replace(fault.old, fault.new)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="faults to plant (default: all)")
    parser.add_argument("--tree", type=Path, default=ROOT, help="tree to copy (default: this one)")
    parser.add_argument("--table", type=Path, help="JSON list of faults instead of the built-in")
    parser.add_argument("--output", type=Path, help="append outcomes as JSON lines; resumes")
    parser.add_argument("--nearest", action="store_true", help="do not run the rest of the suite")
    parser.add_argument("--workers", type=int, default=1, help="pytest workers (default: 1)")
    options = parser.parse_args()
    faults = FAULTS
    if options.table:
        records = json.loads(options.table.read_text(encoding="utf-8"))
        faults = tuple(Fault(**record) for record in records)
    known: dict[str, Outcome] = {}
    if options.output and options.output.exists():
        lines = options.output.read_text(encoding="utf-8").splitlines()
        known = {outcome.name: outcome for outcome in (Outcome(**json.loads(x)) for x in lines)}
    wanted = [fault for fault in faults if not options.names or fault.name in options.names]
    for fault in wanted:
        planted((options.tree / PACKAGE / fault.file).read_text(encoding="utf-8"), fault)
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        Path(folder).chmod(0o755)  # the sandbox reads the package as another user
        copy = Copy(options.tree, Path(folder), sys.executable, options.workers)
        for fault in wanted:
            if fault.name not in known:
                known[fault.name] = copy.run(fault, options.nearest)
                _keep(options.output, known[fault.name])
            _say(known[fault.name])
        while more := copy.failing(_tests(known.values()), every=True):
            copy.broken.update(more)
            _say(f"{', '.join(more)}: also without a fault")
            for fault in wanted:
                if known[fault.name].test in more:
                    known[fault.name] = copy.run(fault, options.nearest)
                    _keep(options.output, known[fault.name])
                    _say(known[fault.name])
    missed = sum(not known[fault.name].caught for fault in wanted)
    _say(f"{len(wanted) - missed} of {len(wanted)} faults are caught")
    return missed


def _tests(outcomes: Iterable[Outcome]) -> list[str]:
    return sorted({outcome.test for outcome in outcomes if "::" in outcome.test})


def _keep(file: Path | None, outcome: Outcome) -> None:
    if file:
        with file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(outcome)) + "\n")


def _say(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
