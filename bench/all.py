"""Runs all measurements of docs/benchmarks.md, each in its own process.

    python -m bench.all [--full] [--only swd,growth] [--json FILE]

The short forms take a few minutes; --full uses the sizes of the single commands.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.measure import machine

NAMES = ("decision", "models", "swd", "batching", "startup", "growth", "history", "profile")


def measured(name: str, short: bool) -> dict[str, Any]:
    """The record of one measurement; its table goes to stdout."""
    begin = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "record.json"
        command = [sys.executable, "-m", f"bench.{name}", "--json", str(file)]
        subprocess.run(command + ["--short"] * short, check=True)
        record: dict[str, Any] = json.loads(file.read_text())
    return {**record, "seconds": round(perf_counter() - begin, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="use the sizes of the single commands")
    parser.add_argument("--only", default=",".join(NAMES), metavar="NAMES")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    options = parser.parse_args()
    begin, benches = perf_counter(), []
    here = machine()
    for name in options.only.split(","):
        benches.append(measured(name, not options.full))
        print(f"({benches[-1]['seconds']:.0f} s)\n", flush=True)
    if options.json:
        seconds = round(perf_counter() - begin, 1)
        results = {"environment": here, "seconds": seconds, "benches": benches}
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
