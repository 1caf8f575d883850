"""`unmask tasks`: what can be evaluated."""

from __future__ import annotations

import argparse
import json


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "tasks",
        help="list the tasks of eval and sweep, their prompts and scorers",
        description="Without NAME, one line per task. With it, the task's prompt presets and "
        "scorers; with --json the presets as they are written into every result.",
    )
    command.add_argument("name", nargs="?", metavar="NAME", help="a task")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """All tasks, or one in detail."""
    from unmask.lab.benchmarks import BENCHMARKS, benchmark

    if arguments.name is None:
        if arguments.json:
            print(json.dumps({name: each.about for name, each in BENCHMARKS.items()}, indent=2))
            return 0
        width = max(map(len, BENCHMARKS)) + 2
        for name, each in BENCHMARKS.items():
            print(f"{name:<{width}}{each.about}")
        return 0
    found = benchmark(arguments.name)
    if arguments.json:
        presets = {name: preset.record() for name, preset in found.presets.items()}
        scorers = {name: scorer.about for name, scorer in found.scorers.items()}
        print(json.dumps({"name": found.name, "version": found.version, "about": found.about,
                          "presets": presets, "scorers": scorers}, indent=2))  # fmt: skip
        return 0
    print(f"{found.name}, version {found.version}: {found.about}\n\npresets")
    for name, preset in found.presets.items():
        usual = preset.decoding
        window = "full window" if usual.block is None else f"blocks of {usual.block}"
        print(f"  {name:<16} {usual.length} tokens, {window}, EOS {usual.eos}; {preset.source}")
    print("\nscorers")
    for name, scorer in found.scorers.items():
        print(f"  {name:<16} {scorer.about}")
    return 0
