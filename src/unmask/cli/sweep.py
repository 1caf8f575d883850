"""`unmask sweep`: decodes and grades tasks under a grid of settings."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from unmask.cli.lab_options import (
    DRY_RUN_HELP,
    MODEL_HELP,
    PRESET_HELP,
    TIMED_HELP,
    add_running,
    options_of,
    progress,
)
from unmask.cli.options import PRESET, add_import, add_options, examples, given_lists
from unmask.decoding.options import OPTIONS
from unmask.embedded import NAME


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "sweep",
        help="decode and grade tasks with a grid of rules and settings",
        description="Runs every combination of the settings as a trial. Every finished example is "
        "stored at once; after an interruption, the same command continues. NAME is a sweep of "
        "the package (see --list) or a TOML file. The keys of the file are the grid options "
        "below, with values or lists of values, in one grid or in several [[grid]] tables. "
        "Options on the command line replace values of the file.",
        epilog=examples(
            "unmask sweep embedded --workers 2",
            "unmask sweep paper-table1 --model FOLDER --data DIR --dry-run",
            'unmask sweep --task words --rule "confidence | swd({0,5}) | eb(0.1)" --block full,16',
        ),
    )
    command.add_argument("name", nargs="?", metavar="NAME", help="name of a sweep, or a TOML file")
    command.add_argument("--list", action="store_true", help="list the sweeps of the package")
    grid = command.add_argument_group(
        "grid (separate values with commas; repeat --rule, --language and --template-args)"
    )
    option = grid.add_argument
    option("--model", metavar="PATH,...", help=f"{MODEL_HELP} (default: {NAME})")
    option("--task", metavar="NAME,...", help="tasks; 'unmask tasks' lists them")
    option("--preset", metavar="NAME,...", help=PRESET_HELP)
    option("--limit", type=int, metavar="N", help="use the first N examples (default: all)")
    add_options(
        grid, OPTIONS, {**PRESET, "rule": "the file's; required without NAME"}, several=True
    )
    add_import(grid)
    running = command.add_argument_group("running")
    add_running(running)
    running.add_argument("--timed", action="store_true", help=TIMED_HELP)
    running.add_argument("--dry-run", action="store_true", help=DRY_RUN_HELP)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run a sweep, or list the sweeps of the package."""
    from unmask.lab.sweep.grid import named_sweeps, read_sweep, sweep_of

    if arguments.list:
        for name, about in named_sweeps().items():
            print(f"{name:<22} {about}")
        return 0
    if arguments.ray is not None:
        options_of(arguments)  # first: --ray may have taken the sweep's name as its address
    changes = changes_of(arguments)
    if arguments.name is None:
        sweep = sweep_of({}, "", changes, "the options")
    else:
        sweep = read_sweep(arguments.name, changes)
    return run_settings(arguments, sweep.settings)


def run_settings(arguments: argparse.Namespace, settings: Any) -> int:
    """Test the graders, decode, grade and print the trials; `eval` calls this too."""
    from unmask.lab.grading import Tools
    from unmask.lab.sweep.cost import dry_run
    from unmask.lab.sweep.plan import plan
    from unmask.lab.sweep.run import check_graders
    from unmask.lab.sweep.run import run as run_all
    from unmask.lab.sweep.tables import efficiency_table, plain_table
    from unmask.lab.sweep.timing import timing_of

    options = options_of(arguments, timed=any(each.timed for each in settings))
    timing = timing_of(settings, options)
    if arguments.dry_run:
        for line in dry_run(settings, options, timing):
            print(line)
        return 0
    works = plan(settings, options.data, timing)
    for words in dict.fromkeys(work.recommended for work in works):
        if words is not None:
            print(f"unmask {arguments.command}: rule {words}", file=sys.stderr, flush=True)
    with Tools.of([work.bench for work in works], arguments.allow_unsandboxed) as tools:
        check_graders(works, tools)
        with progress() as bars:
            left = run_all(works, options, tools, bars)
    for line in plain_table(options.store, [work.trial for work in works]):
        print(line)
    if len(works) == 1:
        print("\naverages per example:")
        for line in efficiency_table(options.store, works[0].trial):
            print(line)
        if not works[0].trial.timing:
            print("the run was not timed: its batches and workers shared the seconds; see --timed")
    if left:
        print(f"\nother workers hold {left} examples; run again when they are done")
        return 1
    print(f"\nstored in {options.store}; 'unmask report {options.store}' writes tables and plots")
    return 0


def changes_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options that were given, as a sweep file would hold them."""
    changes: dict[str, Any] = given_lists(arguments)
    for name in ("model", "task", "preset"):
        if getattr(arguments, name) is not None:
            changes[name] = [part.strip() for part in getattr(arguments, name).split(",")]
    if arguments.limit is not None:
        changes["limit"] = arguments.limit
    if arguments.timed:
        changes["timed"] = True
    return changes
