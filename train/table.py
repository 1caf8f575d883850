"""The whole table of the embedded model, task by task: what docs/embedded.md quotes.

python -m train.table --output docs/embedded.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from unmask import __version__
from unmask.embedded import FOLDER
from unmask.embedded.cells import EB, GAMMAS, THRESHOLD, TOP, Cell, Grid, gamma_sweep
from unmask.embedded.compare import Series, compare, gathered
from unmask.embedded.report import Report
from unmask.embedded.tasks import TASKS

PAPER = Grid(
    lams=(0.0, 1.0, 5.0, 15.0),
    selections=(EB, "eb(0.5)", "eb(1)", THRESHOLD, TOP, "top(2)", "top(4)"),
    policies=("keep", "suppress", "last"),
)
SHORT = Grid(scores=("confidence",), policies=("keep",), selections=(EB, "eb(1)", THRESHOLD, TOP))
LENGTHS = {"words": 32, "code": 32, "latin": 24, "sudoku": 24, "sums": 48}  # else LIST
LIST = 16


def cells_of(task: str) -> list[Cell]:
    """The paper's settings on word problems; a shorter grid on the other tasks."""
    if task != "words":
        return SHORT.cells()
    sweep = [cell for lam in (0.0, 1.0, 5.0, 15.0) for cell in gamma_sweep((lam,))]
    return list(dict.fromkeys([*PAPER.cells(), *sweep]))


def measure(folder: Path, tasks: Sequence[str], count: int) -> dict[str, Any]:
    """All tasks, each in all its cells."""
    studies = {Series(task, count, LENGTHS.get(task, LIST)): cells_of(task) for task in tasks}
    parts, begin = [], perf_counter()
    for part in compare(folder, studies):
        parts.append(part)
        done = f"{part.series.task} {part.places.start}..{part.places.stop - 1}"
        print(f"{done}: {perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
    found = gathered(parts)
    return {series.task: Report.of(series, found[series]).record() for series in studies}


def main() -> None:
    """Measure and write."""
    command = argparse.ArgumentParser(prog="python -m train.table", description=__doc__)
    command.add_argument("--model", type=Path, default=FOLDER, metavar="FOLDER")
    command.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK")
    command.add_argument("--problems", type=int, default=200)
    command.add_argument("--output", type=Path, required=True, metavar="FILE")
    arguments = command.parse_args()
    found = {
        "versions": {"unmask": __version__, "torch": torch.__version__},
        "gammas": GAMMAS,
        "paper": asdict(PAPER),
        "tasks": measure(arguments.model, arguments.tasks, arguments.problems),
    }
    arguments.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
