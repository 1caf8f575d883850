"""`unmask eval`: decodes and grades a task with one rule."""

from __future__ import annotations

import argparse
from pathlib import Path

from unmask.cli.lab_options import DRY_RUN_HELP, TIMED_HELP, add_running, add_task
from unmask.cli.options import PRESET, add_import, add_options, examples, given_options
from unmask.decoding.options import OPTIONS
from unmask.rules.recipes import DEFAULT_RULE


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "eval",
        help="decode and grade a task with one rule",
        description="Decodes every example of a task, grades the answers and prints the accuracy. "
        "Every finished example is stored at once; after an interruption, the same command "
        "continues. 'unmask sweep' runs many rules; 'unmask report' writes tables and plots.",
        epilog=examples(
            "unmask eval --task words --rule swd --limit 50",
            'unmask eval --task gsm8k --model FOLDER --data DIR --rule "confidence | eb(0.1)"',
        ),
    )
    add_task(command)
    option = command.add_argument
    option("--limit", type=int, metavar="N", help="use the first N examples (default: all)")
    add_options(command.add_argument_group("decoding"), OPTIONS, PRESET)
    add_import(command)
    running = command.add_argument_group("running")
    add_running(running)
    running.add_argument("--timed", action="store_true", help=TIMED_HELP)
    running.add_argument(
        "--trace", type=Path, metavar="DIR", help="write a trace of every example to this folder"
    )
    running.add_argument("--dry-run", action="store_true", help=DRY_RUN_HELP)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run a sweep of one setting."""
    from unmask.cli.sweep import run_settings
    from unmask.errors import LabError
    from unmask.lab.sweep.grid import sweep_of

    names = ("task", "model", "preset", "limit", "timed")
    values = {name: getattr(arguments, name) for name in names}
    table = {name: value for name, value in values.items() if value is not None}
    table |= {"rule": DEFAULT_RULE} | given_options(arguments)
    settings = sweep_of(table, "", {}, "the options").settings
    if len(settings) != 1:
        raise LabError(f"{arguments.rule!r} is a sweep of {len(settings)} rules; use unmask sweep")
    return run_settings(arguments, settings)
