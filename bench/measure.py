"""Runs measurements in turns and prints them as tables and JSON."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from unmask.lab.sweep.environment import environment

Row = dict[str, Any]
Taken = dict[str, list[float]]  # the seconds of each method, round by round


class Column(NamedTuple):
    """A key of the rows, its title, and the format of its figures."""

    key: str
    title: str
    form: str = ""  # a format such as ".1f" or ".1%"; words need none
    unit: str = ""


@dataclass(frozen=True)
class Bench:
    """A measurement; `run(True)` is its short form, unless it needs more options."""

    name: str  # python -m bench.NAME
    title: str
    columns: tuple[Column, ...]
    run: Callable[..., list[Row]]
    needs: str = ""  # options that its command cannot do without


def by_turns(methods: dict[str, Callable[[], Any]], rounds: int, warm: bool = True) -> Taken:
    """Seconds of the processor for each method in each round; if `warm`, one more goes before.

    The order is turned round from round to round, and on one thread the time that others have of
    the processor is not counted: what is compared is what the methods do.
    """
    taken: Taken = {name: [] for name in methods}
    for number in range(0 if warm else 1, rounds + 1):
        for name in list(methods) if number % 2 else reversed(methods):
            begin = time.process_time()
            methods[name]()
            if number:
                taken[name].append(time.process_time() - begin)
    return taken


def side_by_side(
    runs: dict[str, Iterator[Any]], see: Callable[[str, Any], None] = lambda name, step: None
) -> Taken:
    """Seconds of the processor for each step of each run, all of them advanced by turns.

    `see` is shown every step; its time is not counted.
    """
    taken: Taken = {name: [] for name in runs}
    going, turn = dict(runs), 0
    while going:
        turn += 1
        for name in list(going) if turn % 2 else list(reversed(going)):
            begin = time.process_time()
            step = next(going[name], None)
            if step is None:
                del going[name]
                continue
            taken[name].append(time.process_time() - begin)
            see(name, step)
    return taken


def least(rounds: Sequence[Sequence[float]]) -> float:
    """The sum over the steps of the least time that each had in any round."""
    return sum(min(times) for times in zip(*rounds, strict=True))


def ratio(taken: Taken, above: str, below: str) -> float:
    """The median over the rounds of one method's time over another's."""
    pairs = zip(taken[above], taken[below], strict=True)
    return statistics.median(a / b for a, b in pairs)


def table(columns: Sequence[Column], rows: Sequence[Row]) -> list[str]:
    """Aligned lines; words stand to the left."""
    texts = [[column.title for column in columns]]
    texts += [[written(column, row.get(column.key)) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    words = [any(isinstance(row.get(column.key), str) for row in rows) for column in columns]
    return [
        "  ".join(
            text.ljust(width) if left else text.rjust(width)
            for text, width, left in zip(line, widths, words, strict=True)
        ).rstrip()
        for line in texts
    ]


def written(column: Column, value: Any) -> str:
    """A figure in the format of its column."""
    return "" if value is None else f"{value:{column.form}}{column.unit}"


def about(docstring: str) -> str:
    """The docstring of a module without its first line and usage."""
    parts = docstring.strip().split("\n\n")[1:]
    return "\n\n".join(part for part in parts if not part.startswith("    "))


def record(bench: Bench, rows: list[Row], short: bool) -> dict[str, Any]:
    """A measurement with its command and its columns, for JSON."""
    return {
        "name": bench.name,
        "title": bench.title,
        "about": about(sys.modules[bench.run.__module__].__doc__ or ""),
        "command": f"python -m bench.{bench.name}{bench.needs}" + " --short" * short,
        "columns": [column._asdict() for column in bench.columns],
        "rows": rows,
    }


def machine() -> dict[str, Any]:
    """Versions and hardware; the threads are those of the measurement."""
    here = environment(torch.device("cpu"), 0)
    del here["batch_size"]
    return {**here, "cores": os.cpu_count(), "load": load()}


def load() -> float:
    """The load of the machine over the last minute; a measurement on one thread adds 1."""
    return round(os.getloadavg()[0], 2)


def main(bench: Bench) -> None:
    """Print the table; with --json write the figures too."""
    options = arguments(bench).parse_args()
    report(bench, options, lambda: bench.run(options.short))


def arguments(bench: Bench) -> argparse.ArgumentParser:
    """The options of every measurement."""
    parser = argparse.ArgumentParser(
        description=bench.title, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="smaller, as `make bench` runs it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures; - for stdout")
    return parser


def report(bench: Bench, options: argparse.Namespace, run: Callable[[], list[Row]]) -> None:
    """Measure on one thread, print the table, and write the figures if a file is given."""
    torch.set_num_threads(1)
    here, begin = machine(), time.perf_counter()
    rows = run()
    seconds = round(time.perf_counter() - begin, 1)
    here["load"] = load()  # at the end: it is the load during the measurement
    out = sys.stderr if options.json == Path("-") else sys.stdout
    for line in (bench.title, *table(bench.columns, rows)):
        print(line, file=out)
    if options.json:
        taken = {**record(bench, rows, options.short), "environment": here, "seconds": seconds}
        text = json.dumps(taken, indent=1) + "\n"
        sys.stdout.write(text) if options.json == Path("-") else options.json.write_text(text)
