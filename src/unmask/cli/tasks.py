"""`unmask tasks`: lists the tasks, or describes one."""

from __future__ import annotations

import argparse
import json

from unmask.cli.options import examples


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "tasks",
        help="list the tasks of eval, sweep, tune and score, or describe one",
        description="Without NAME: lists the tasks. With NAME: lists the presets and scorers of "
        "a task; --json prints the presets in full, as every result records them.",
        epilog=examples("unmask tasks", "unmask tasks words"),
    )
    command.add_argument("name", nargs="?", metavar="NAME", help="name of a task")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """List all tasks, or describe one."""
    from unmask.decoding.options import EOS_WORDS
    from unmask.embedded import PROMPTS
    from unmask.lab.benchmarks import BENCHMARKS, benchmark

    if arguments.name is None:
        if arguments.json:
            print(json.dumps({name: each.about for name, each in BENCHMARKS.items()}, indent=2))
            return 0
        width = max(map(len, BENCHMARKS)) + 2
        for name, each in BENCHMARKS.items():
            print(f"{name:<{width}}{each.about}")
        print("\nPrompts of the embedded model's tasks, to try with 'unmask run':")
        print("\n".join(f'  "{prompt}"' for prompt in PROMPTS))
        return 0
    task = benchmark(arguments.name)
    if arguments.json:
        presets = {name: preset.record() for name, preset in task.presets.items()}
        scorers = {name: scorer.about for name, scorer in task.scorers.items()}
        print(json.dumps({"name": task.name, "version": task.version, "about": task.about,
                          "presets": presets, "scorers": scorers}, indent=2))  # fmt: skip
        return 0
    print(f"{task.name}, version {task.version}: {task.about}\n\npresets")
    for name, preset in task.presets.items():
        usual = preset.decoding
        window = "full window" if usual.block in (None, "full") else f"blocks of {usual.block}"
        ends = EOS_WORDS[usual.eos or "keep"]
        print(f"  {name:<16} {usual.length} tokens, {window}, {ends}; {preset.source}")
    print("\nscorers")
    for name, scorer in task.scorers.items():
        print(f"  {name:<16} {scorer.about}")
    return 0
