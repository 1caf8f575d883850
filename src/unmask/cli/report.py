"""`unmask report`: tables, plots and JSON of a store of results."""

from __future__ import annotations

import argparse
from pathlib import Path

from unmask.cli.options import add_import, examples


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "report",
        help="write tables, plots and paired comparisons of a store of results",
        description="Reads the results of 'unmask eval' and 'unmask sweep' and writes report.md, "
        "report.json and report.html, with the plots beside them. A report says what was run, "
        "where SWD or another rule helps and where it loses, and has tables like the paper's with "
        "the paper's figures, AUP, time and memory. It lists trials that cannot be compared. Plots "
        "need unmask[plot].",
        epilog=examples("unmask report unmask-lab.sqlite --output report"),
    )
    option = command.add_argument
    option("store", type=Path, metavar="STORE", help="a file of results, such as unmask-lab.sqlite")
    option("--output", type=Path, metavar="FOLDER", help="folder to write (default: STORE-report)")
    baseline = (
        "compare every rule with this one of the store (default: an SWD rule with itself at lam 0, "
        "another rule with the best one without memory in the same setting)"
    )
    option("--baseline", metavar="RULE", help=baseline)
    add_import(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the report and print the names of its files."""
    from unmask.lab.report import write_report

    store: Path = arguments.store
    folder = arguments.output or store.with_name(f"{store.stem}-report")
    for file in write_report(store, folder, arguments.baseline):
        print(f"written: {file}")
    return 0
