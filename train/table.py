"""Measure the embedded model task by task: docs/embedded.json, which docs/embedded-tables.md shows.

python -m train.table --output docs/embedded.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from unmask import __version__
from unmask.cli.demo import Count
from unmask.embedded import NAME
from unmask.embedded.tasks import TASKS
from unmask.lab.lam_table import LamTable, measured
from unmask.lab.sweep.grid import read_sweep
from unmask.lab.sweep.plan import plan

SWEEP, STARTS = (Path(__file__).with_name(f"{name}.toml") for name in ("table", "starts"))
GAMMAS = ("0.0005", "0.005", "0.05", "0.1", "0.5", "1", "2")  # the paper's, in table.toml


def measure(sweep: Path, model: str, tasks: Sequence[str], count: int) -> dict[str, Any]:
    """All tasks of a sweep, each under all its rules."""
    settings = read_sweep(str(sweep), {"model": model, "limit": count}).settings
    tables, begin = {}, perf_counter()
    for task in dict.fromkeys(each.task for each in settings if each.task in tasks):
        works = plan([each for each in settings if each.task == task], None)
        tables[task] = LamTable(measured(works, Count())).record()
        print(f"{task}: {perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
    return tables


def main() -> None:
    """Measure and write."""
    command = argparse.ArgumentParser(prog="python -m train.table", description=__doc__)
    command.add_argument("--model", default=NAME, metavar="FOLDER")
    command.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK")
    command.add_argument("--problems", type=int, default=200)
    command.add_argument("--output", type=Path, required=True, metavar="FILE")
    arguments = command.parse_args()
    results = {
        "versions": {"unmask": __version__, "torch": torch.__version__},
        "gammas": GAMMAS,
        "starts": measure(STARTS, arguments.model, arguments.tasks, arguments.problems),
        "tasks": measure(SWEEP, arguments.model, arguments.tasks, arguments.problems),
    }
    arguments.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
