"""`unmask report`: a store of results as tables, plots and JSON."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "report",
        help="tables, plots and paired comparisons of a store of results",
        description="Reads what `unmask eval` and `unmask sweep` have stored and writes report.md, "
        "report.json and report.html, one file that needs nothing else, with the plots beside "
        "them: what was run, where SWD helps and where it loses, tables like the paper's with its "
        "figures beside ours, AUP, time and memory. Trials that are not comparable are named, not "
        "compared. Plots need the extra `plot`.",
    )
    command.add_argument("store", type=Path, metavar="STORE", help="such as unmask-lab.sqlite")
    command.add_argument(
        "--output", type=Path, metavar="FOLDER", help="(STORE's name with -report, beside it)"
    )
    command.add_argument(
        "--baseline", metavar="RULE",
        help="compare every rule with this one (an SWD rule with itself at lam 0)",
    )  # fmt: skip
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the report and name its files."""
    from unmask.lab.report import write_report

    store: Path = arguments.store
    folder = arguments.output or store.with_name(f"{store.stem}-report")
    for file in write_report(store, folder, arguments.baseline):
        print(f"written: {file}")
    return 0
