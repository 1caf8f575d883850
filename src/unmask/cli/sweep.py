"""`unmask sweep`: a grid of settings over tasks, resumable, on any number of workers."""

from __future__ import annotations

import argparse
from typing import Any

from unmask.cli.importing import add_import
from unmask.cli.lab_options import add_cluster, add_running, options_of, progress
from unmask.cli.options import PRESET, add_options, given_lists
from unmask.decoding.options import OPTIONS


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "sweep",
        help="decode and grade tasks under a grid of rules and settings, resumable",
        description="Every combination of the settings is a trial; every finished example is "
        "stored at once, and the same command goes on after an interruption. NAME is one of the "
        "package's sweeps (--list) or a TOML file with the keys of the options below, values or "
        "lists of them, in one grid or in several [[grid]] tables. Options replace what a file "
        "says.",
        epilog="""examples: unmask sweep embedded --workers 2;
        unmask sweep paper-table1 --model FOLDER --data DIR --dry-run;
        unmask sweep --task words --rule "confidence | swd({0,1,5}) | eb(0.1)" --block full,16""",
    )
    command.add_argument("name", nargs="?", metavar="NAME", help="a sweep, or FILE.toml")
    command.add_argument("--list", action="store_true", help="show the package's sweeps")
    grid = command.add_argument_group("grid (several values: commas; rules: several --rule)")
    grid.add_argument("--model", metavar="PATHS", help="folders or hub ids (default: embedded)")
    grid.add_argument("--task", metavar="NAMES", help="tasks; `unmask tasks` lists them")
    grid.add_argument(
        "--preset", metavar="NAMES", help="prompt presets: paper, official, lm-eval or own"
    )
    grid.add_argument("--limit", type=int, metavar="N", help="only the first N examples")
    add_options(grid, OPTIONS, {**PRESET, "rule": "none; give one"}, several=True)
    add_import(grid)
    running = command.add_argument_group("running")
    add_running(running)
    add_cluster(running)
    running.add_argument(
        "--dry-run", action="store_true", help="say what would be run and what it would cost"
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Plan, test the graders, decode, grade, and print the trials."""
    from unmask.lab.sweep.grid import named_sweeps, read_sweep, sweep_of

    if arguments.list:
        for name, about in named_sweeps().items():
            print(f"{name:<22} {about}")
        return 0
    if arguments.ray is not None:
        options_of(arguments)  # first: it may have taken the sweep's name for an address
    given = changes_of(arguments)
    if arguments.name is None:
        sweep = sweep_of({}, "", given, "the options")
    else:
        sweep = read_sweep(arguments.name, given)
    return run_settings(arguments, sweep.settings)


def run_settings(arguments: argparse.Namespace, settings: Any) -> int:
    """Everything after the settings are known; `eval` comes here too."""
    from unmask.lab.grading import Tools
    from unmask.lab.sweep.cost import estimate
    from unmask.lab.sweep.plan import plan
    from unmask.lab.sweep.run import check_graders
    from unmask.lab.sweep.run import run as run_all
    from unmask.lab.sweep.tables import efficiency_table, plain_table

    options = options_of(arguments)
    works = plan(settings, options.data)
    if arguments.dry_run:
        for line in estimate(works, options.store):
            print(line)
        return 0
    with Tools.of([work.bench for work in works], arguments.allow_unsandboxed) as tools:
        check_graders(works, tools)
        with progress() as bars:
            left = run_all(works, options, tools, bars)
    for line in plain_table(options.store, [work.trial for work in works]):
        print(line)
    if len(works) == 1:
        print("\nof one example, on average:")
        for line in efficiency_table(options.store, works[0].trial):
            print(line)
    if left:
        print(f"\n{left} examples are in the hands of other workers; run again when they are done")
        return 1
    print(f"\nkept in {options.store}; unmask report {options.store} makes tables and plots")
    return 0


def changes_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options that were given, as a sweep file would hold them."""
    changes: dict[str, Any] = given_lists(arguments)
    for name in ("model", "task", "preset"):
        if getattr(arguments, name) is not None:
            changes[name] = [part.strip() for part in getattr(arguments, name).split(",")]
    if arguments.limit is not None:
        changes["limit"] = arguments.limit
    return changes
