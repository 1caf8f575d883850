"""`unmask arena`: every rule along its own knob, on the same examples."""

from __future__ import annotations

import argparse
import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from unmask.cli.lab_options import MODEL_HELP, PRESET_HELP, RunCount, add_running, options_of
from unmask.cli.options import add_import, add_options, examples, given_options
from unmask.decoding.options import EOS_POLICIES, OPTIONS, DecodingOptions
from unmask.embedded import NAME
from unmask.errors import UnknownName

TASKS, BLOCKS, POLICIES = "words,code,sort", "full,16", "keep,last"
LENGTH, LIMIT = 32, 32
OWN = ("rule", "block", "eos", "length")  # options that the arena has in its own way


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "arena",
        help="compare every rule of the field along its knob",
        description="Runs every recipe with its published knobs and along the knob of its "
        "selection, on the same examples, in every field: a task, a window and an EOS policy. "
        "Writes a page, Markdown, JSON and a plot per field: accuracy against forwards with the "
        "front, AUP, and paired differences at equal forwards against the best rule without "
        "memory, with Holm's correction for all comparisons. Finished examples are stored; after "
        "an interruption, the same command continues.",
        epilog=examples(
            "unmask arena --output arena",
            'unmask arena "mine | eb(0.1)" --import mine.py',
            "unmask arena --model FOLDER --task gsm8k --data DIR --length 512 --dry-run",
        ),
    )
    command.add_argument(
        "rules", nargs="*", metavar="RULE",
        help="rules to add to the recipes; braces are the values of a knob",
    )  # fmt: skip
    option = command.add_argument
    option("--only", metavar="NAME,...", help="only these recipes (default: all)")
    option("--task", default=TASKS, metavar="NAME,...", help=f"tasks (default: {TASKS})")
    option("--model", default=NAME, metavar="PATH", help=f"{MODEL_HELP} (default: {NAME})")
    option("--preset", metavar="NAME", help=PRESET_HELP)
    option("--limit", type=int, default=LIMIT, metavar="N",
           help=f"use the first N examples of each task (default: {LIMIT})")  # fmt: skip
    option("--block", default=BLOCKS, metavar="N,...",
           help=f"windows: positions per block, or full (default: {BLOCKS})")  # fmt: skip
    option("--eos", default=POLICIES, metavar="POLICY,...",
           help=f"EOS policies: {', '.join(EOS_POLICIES)} (default: {POLICIES})")  # fmt: skip
    option("--length", type=int, default=LENGTH, metavar="N",
           help=f"number of tokens to write (default: {LENGTH})")  # fmt: skip
    option("--output", type=Path, default=Path("unmask-arena"), metavar="DIR",
           help="folder of the page and its plots (default: unmask-arena)")  # fmt: skip
    add_options(
        command.add_argument_group("decoding, of all rules"),
        [name for name in OPTIONS if name not in OWN],
    )
    add_import(command)
    running = command.add_argument_group("running")
    add_running(running)
    running.add_argument("--dry-run", action="store_true", help="print the cost and stop")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Plan, run and write the arena."""
    from unmask.lab.arena.entries import roster
    from unmask.lab.arena.page import write_arena
    from unmask.lab.arena.run import places_of, plan_arena, run_arena
    from unmask.lab.arena.words import opening
    from unmask.lab.benchmarks import benchmark
    from unmask.lab.grading import Tools
    from unmask.lab.sweep.cost import dry_run
    from unmask.lab.sweep.grid import Setting
    from unmask.lab.sweep.memo_cost import memo_dry_run
    from unmask.lab.sweep.plan import Sessions

    given = given_options(_shared(arguments))
    options = DecodingOptions.read({**given, "length": arguments.length})
    usual = Setting(arguments.model, "", options, arguments.preset, arguments.limit)
    tasks, policies = _names(arguments.task), _names(arguments.eos)
    for policy in policies:
        if policy not in EOS_POLICIES:
            raise UnknownName("EOS policy", policy, EOS_POLICIES)
    blocks = [OPTIONS["block"].parse("--block", text) for text in _names(arguments.block)]
    places = places_of(tasks, blocks, policies)
    running = _running(arguments)
    newline = Sessions().of(usual).spec.newline_id is not None
    rules = roster(arguments.length, arguments.rules, _names(arguments.only), newline)
    plan = plan_arena(rules, places, usual)
    if arguments.dry_run:
        for line in (memo_dry_run if running.memo else dry_run)(plan.all, running):
            print(line)
        return 0
    arguments.output.mkdir(parents=True, exist_ok=True)  # an impossible place fails now
    grading = Tools.of([benchmark(task) for task in tasks], arguments.allow_unsandboxed)
    with grading as tools:
        arena = run_arena(plan, running, tools, RunCount())
    print("\n".join(opening(arena)))
    for file in write_arena(arena, arguments.output, _command(arguments)):
        print(f"written: {file}")
    return 0


def _shared(arguments: argparse.Namespace) -> argparse.Namespace:
    """The arguments without the options that the arena itself defines."""
    kept = {name: value for name, value in vars(arguments).items() if name not in OWN}
    return argparse.Namespace(**kept)


def _command(arguments: argparse.Namespace) -> str:
    """The command that makes the same arena."""
    usual = {"task": TASKS, "block": BLOCKS, "eos": POLICIES, "length": LENGTH, "limit": LIMIT,
             "model": NAME, "only": None, "preset": None}  # fmt: skip
    words = ["unmask", "arena", *arguments.rules]
    for name, value in usual.items():
        if (given := getattr(arguments, name)) != value:
            words += [f"--{name}", str(given)]
    for name in arguments.imports:
        words += ["--import", Path(name).name]
    return shlex.join(words)


def _names(text: str | None) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()] if text else []


def _running(arguments: argparse.Namespace) -> Any:
    """How to run; the embedded model is run with a memo, on all cores."""
    options = options_of(arguments)
    if arguments.model != NAME or options.cluster is not None:
        return options
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    devices = options.devices if arguments.workers else ("cpu",) * (cores or 1)
    return replace(options, devices=devices, memo=True)
