"""All measurements of docs/benchmarks.md, one after another, each in a process of its own.

    python -m bench.all [--full] [--only swd,growth] [--json FILE]

The short forms take a few minutes; --full are the sizes of the single commands.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.common import in_fresh_process
from bench.measure import Bench, Column, Row, about, machine, record, table

NAMES = ("decision", "models", "swd", "batching", "startup", "growth")


def measured(name: str, short: bool) -> dict[str, Any]:
    """The record of one measurement; its table goes to stdout."""
    begin = perf_counter()
    module = importlib.import_module(f"bench.{name}")
    found = _by_itself(name, short) if hasattr(module, "BENCH") else _adapted(module, short)
    return {**found, "seconds": round(perf_counter() - begin, 1)}


def _by_itself(name: str, short: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        command = [sys.executable, "-m", f"bench.{name}", "--json", str(file)]
        subprocess.run(command + ["--short"] * short, check=True)
        found: dict[str, Any] = json.loads(file.read_text())
    return found


def _adapted(module: Any, short: bool) -> dict[str, Any]:
    """A module without a `BENCH`: its `run`, or what it prints with --json, as rows."""
    name = module.__name__.removeprefix("bench.")
    if hasattr(module, "run"):
        rows = in_fresh_process(module.run, short)
    else:
        command = [sys.executable, "-m", module.__name__, "--json"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        rows = list(flat(json.loads(done.stdout)))
    title = module.__doc__.strip().splitlines()[0].removesuffix(".")
    bench = Bench(name, title, columns_of(rows), module.main)
    for line in (title, *table(bench.columns, rows)):
        print(line)
    found = record(bench, rows, short and hasattr(module, "run"))
    return {**found, "about": about(module.__doc__)}


def flat(found: Any, outer: Row | None = None) -> Iterator[Row]:
    """Rows of nested records: a list gives several rows, a record within a record joined names."""
    if isinstance(found, list):
        for each in found:
            yield from flat(each, outer)
        return
    row, lists = dict(outer or {}), []
    for key, value in found.items():
        if isinstance(value, list):
            lists.append(value)
        elif isinstance(value, dict):
            row |= {f"{key}_{inner}": each for inner, each in value.items()}
        else:
            row[key] = value
    if not lists:
        yield row
    for each in lists:
        yield from flat(each, row)


def columns_of(rows: Sequence[Row]) -> tuple[Column, ...]:
    """A column for every key, figures with three digits."""
    keys = dict.fromkeys(key for row in rows for key in row)
    floats = {key for key in keys if any(isinstance(row.get(key), float) for row in rows)}
    return tuple(Column(key, key.replace("_", " "), ".3g" if key in floats else "") for key in keys)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="the sizes of the single commands")
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
        found = {"environment": here, "seconds": seconds, "benches": benches}
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
