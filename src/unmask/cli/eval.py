"""`unmask eval`: one rule on one task."""

from __future__ import annotations

import argparse
from pathlib import Path

from unmask.cli.importing import add_import
from unmask.cli.lab_options import add_cluster, add_running
from unmask.cli.options import PRESET, add_options, given_options
from unmask.decoding.options import OPTIONS
from unmask.embedded import NAME
from unmask.rules.recipes import DEFAULT_RULE


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "eval",
        help="decode and grade a task with one rule",
        description="Every finished example is stored at once; the same command goes on after an "
        "interruption. `unmask sweep` runs many rules, `unmask report` makes tables and plots.",
        epilog="""examples: unmask eval --task words --rule swd --limit 50;
        unmask eval --task gsm8k --model FOLDER --data DIR --rule "confidence | swd(5) | eb(0.1)"
        """,
    )
    command.add_argument(
        "--task", required=True, metavar="NAME", help="task; `unmask tasks` lists them"
    )
    command.add_argument(
        "--model", default=NAME, metavar="PATH", help="folder or hub id (default: embedded)"
    )
    command.add_argument(
        "--preset", metavar="NAME", help="prompt preset: paper, official, lm-eval or own"
    )
    command.add_argument("--limit", type=int, metavar="N", help="only the first N examples")
    add_options(command.add_argument_group("decoding"), OPTIONS, PRESET)
    add_import(command)
    running = command.add_argument_group("running")
    add_running(running)
    add_cluster(running)
    running.add_argument(
        "--trace", type=Path, metavar="DIR", help="write every step of every example to files here"
    )
    running.add_argument("--dry-run", action="store_true", help="say what it would cost")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """A sweep of one setting."""
    from unmask.cli.sweep import run_settings
    from unmask.errors import LabError
    from unmask.lab.sweep.grid import sweep_of

    given = {name: getattr(arguments, name) for name in ("task", "model", "preset", "limit")}
    table = {name: value for name, value in given.items() if value is not None}
    table |= {"rule": DEFAULT_RULE} | given_options(arguments)
    settings = sweep_of(table, "", {}, "the options").settings
    if len(settings) != 1:
        raise LabError(f"{arguments.rule!r} is a sweep of {len(settings)} rules; use unmask sweep")
    return run_settings(arguments, settings)
