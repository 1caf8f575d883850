"""`unmask eval`: one rule on one task."""

from __future__ import annotations

import argparse
from pathlib import Path

from unmask.cli.importing import add_import
from unmask.cli.lab_options import add_cluster, add_running, add_sampling, number_of
from unmask.cli.run import CACHES, EOS
from unmask.embedded import NAME


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
    command.add_argument("--task", required=True, metavar="NAME", help="see `unmask tasks`")
    command.add_argument(
        "--model", default=NAME, metavar="PATH", help="folder or hub id (embedded)"
    )
    command.add_argument("--preset", metavar="NAME", help="prompts: paper, official, lm-eval, own")
    command.add_argument("--rule", default="swd", help="a rule or a recipe (swd)")
    add_import(command)
    command.add_argument("--block", metavar="N", help="positions, or full (the preset's)")
    command.add_argument("--length", type=int, metavar="N", help="tokens (the preset's)")
    command.add_argument("--eos", choices=EOS, help="(the preset's)")
    command.add_argument("--cache", choices=CACHES, default="none", help="(none)")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="(0)")
    add_sampling(command)
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

    names = ("task", "model", "preset", "rule", "length", "eos", "cache", "seed", "limit", "dtype",
             "temperature", "top_p", "steps")  # fmt: skip
    given = {name: getattr(arguments, name) for name in names}
    found = {name: value for name, value in given.items() if value is not None}
    if arguments.block is not None:
        found["block"] = number_of("block", arguments.block)
    settings = sweep_of(found, "", {}, "the options").settings
    if len(settings) != 1:
        raise LabError(f"{arguments.rule!r} is a sweep of {len(settings)} rules; use unmask sweep")
    return run_settings(arguments, settings)
