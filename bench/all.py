"""Runs all measurements of docs/benchmarks-tables.md, each in its own process.

    python -m bench.all [--full] [--only swd,growth] [--originals FOLDER] [--json FILE]

The short forms take a few minutes; --full uses the sizes of the single commands. `bench.originals`
runs only if a folder of clones is given. Measurements in FILE that are not made again stay in it.
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

NAMES = (
    "decision",
    "originals",
    "models",
    "swd",
    "batching",
    "startup",
    "growth",
    "history",
    "profile",
    "forward",
)


def measured(name: str, options: list[str]) -> dict[str, Any]:
    """The record of one measurement; its table goes to stdout."""
    begin = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "record.json"
        command = [sys.executable, "-m", f"bench.{name}", "--json", str(file), *options]
        subprocess.run(command, check=True)
        record: dict[str, Any] = json.loads(file.read_text())
    return {**record, "seconds": round(perf_counter() - begin, 1)}


def merged(records: list[dict[str, Any]], file: Path) -> list[dict[str, Any]]:
    """New records, and those of the file that were not made again, in the order of the page."""
    before = json.loads(file.read_text())["benches"] if file.exists() else []
    by_name = {record["name"]: record for record in (*before, *records)}
    return [by_name[name] for name in NAMES if name in by_name]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="use the sizes of the single commands")
    parser.add_argument("--only", metavar="NAMES", help="some of them, with commas between")
    parser.add_argument("--originals", metavar="FOLDER", help="clones for bench.originals")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(NAMES)
    if unknown := set(names) - set(NAMES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(NAMES)}")
    if not options.originals:
        if options.only and "originals" in names:
            parser.error("originals needs clones of the other projects: --originals FOLDER")
        names = [name for name in names if name != "originals"]
    records = []
    for name in names:
        clones = ["--originals", options.originals] if name == "originals" else []
        records.append(measured(name, clones + ["--short"] * (not options.full)))
        print(f"({records[-1]['seconds']:.0f} s)\n", flush=True)
    if options.json:
        results = {"benches": merged(records, options.json)}
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
