"""`unmask compare`: rules on the same examples of a task, on one screen."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from unmask.cli.lab_options import add_running, add_task, options_of, progress
from unmask.cli.options import PRESET, add_import, add_options, examples, given_options, refuse
from unmask.decoding.options import OPTIONS, DecodingOptions

if TYPE_CHECKING:
    from unmask.lab.rule_comparison import RuleComparison
    from unmask.lab.sweep.plan import Work
    from unmask.lab.sweep.run_options import RunOptions

SHOWN = 3  # examples of each kind on the screen


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "compare",
        help="compare rules on the same examples of a task",
        description="Decodes the same examples under every rule, grades them, and prints accuracy, "
        "forward passes, paired differences to the first rule with interval and exact p, a verdict "
        "in words, and the examples that only one of two rules solves. Every finished example is "
        "stored at once; after an interruption, the same command continues. All rules share the "
        "decoding options.",
        epilog=examples(
            'unmask compare "confidence | eb(0.1)" swd --task words --block full',
            'unmask compare "entropy | eb({0.1,1})" "margin | eb({0.1,1})" --curve --task words',
        ),
    )
    command.add_argument(
        "rules", nargs="+", metavar="RULE", help="rules or recipes; the first is the baseline"
    )
    add_task(command)
    option = command.add_argument
    option("--limit", type=int, metavar="N", help="use the first N examples (default: all)")
    option(
        "--curve", action="store_true",
        help="sweep the knob of every rule, over the values in braces or those that its selection "
        "declares, and compare the rules at equal forwards",
    )  # fmt: skip
    option(
        "--example", action="append", metavar="NAME", help="use this example only; may be repeated"
    )
    option(
        "--trace", type=Path, metavar="DIR",
        help="write the traces of --example to this folder, to see why the rules differ",
    )  # fmt: skip
    option("--output", type=Path, metavar="DIR", help="write a page, a plot, Markdown and JSON")
    option("--json", action="store_true", help="print JSON")
    shared = [name for name in OPTIONS if name != "rule"]
    add_options(command.add_argument_group("decoding, of all rules"), shared, PRESET)
    add_import(command)
    add_running(command.add_argument_group("running"))
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare, and print the outcome."""
    from unmask.lab.compare import chosen, compared
    from unmask.lab.grading import Tools

    refuse({"--trace needs --example NAME": bool(arguments.trace and not arguments.example)})
    options = options_of(arguments)
    works = _works(arguments, options.data)
    bench = next(iter(works.values()))[0].bench
    with Tools.of([bench], arguments.allow_unsandboxed) as tools, progress() as bars:
        if arguments.example:
            works = chosen(works, arguments.example)
        if arguments.trace:
            with TemporaryDirectory() as folder:  # decoded anew: stored answers have no trace
                fresh = replace(options, store=Path(folder) / "s.sqlite", traces=arguments.trace)
                comparison = compared(works, fresh, tools, bars)
        else:
            comparison = compared(works, options, tools, bars)
    _print(comparison, arguments, options)
    if arguments.trace:
        _print_traces(works, arguments.trace)
    return 0


def _works(arguments: argparse.Namespace, data: Path | None) -> dict[str, list[Work]]:
    from unmask.lab.benchmarks import benchmark
    from unmask.lab.compare import rules_of, works_of
    from unmask.lab.sweep.grid import Setting
    from unmask.lab.sweep.plan import Sessions

    rules = rules_of(arguments.rules, arguments.curve)
    shared = DecodingOptions.read(given_options(arguments))
    usual = Setting(arguments.model, arguments.task, shared, arguments.preset, arguments.limit)
    examples = benchmark(arguments.task).load(data)
    return works_of(rules, usual, Sessions().of(usual), examples)


def _print(comparison: RuleComparison, arguments: argparse.Namespace, options: RunOptions) -> None:
    files = comparison.write(arguments.output) if arguments.output else []
    if arguments.json:
        print(json.dumps(comparison.record(), indent=1, ensure_ascii=False))
        return
    print(f"{comparison.about}\n\n{comparison}")
    _print_apart(comparison.disagreements())
    print()
    for file in files:
        print(f"written: {file}")
    if not arguments.trace:
        print(f"stored in {options.store}; run the same command again to resume or to extend it")


def _print_apart(examples: Sequence[dict[str, Any]]) -> None:
    """Print some examples that only one of two rules solves, each with its command."""
    from unmask.lab.report.wording import counted

    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for each in examples:
        groups.setdefault((each["right"], each["wrong"]), []).append(each)
    for (right, wrong), members in groups.items():
        print(f"\nright with {right}, wrong with {wrong}: {counted(len(members), 'example')}")
        for each in members[:SHOWN]:
            print(f"  {each['command']}")


def _print_traces(works: Mapping[str, Sequence[Work]], folder: Path) -> None:
    """Print the files of the traces and the command that shows two of them side by side."""
    trials = [work.trial for members in works.values() for work in members]
    names = sorted(file.name for file in (folder / trials[0].key).glob("*.trace"))
    for name in names:
        files = [folder / trial.key / name for trial in trials]
        for trial, file in zip(trials, files, strict=True):
            print(f"{trial.rule}: {file}")
        print(f"see: unmask page {' '.join(map(str, files[:2]))}")
