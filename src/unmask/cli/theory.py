"""`unmask theory`: checks the paper's bound by enumeration; measures dependence on a model."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from unmask.cli.options import (
    PRESET,
    add_import,
    add_options,
    examples,
    positive,
    read_options,
    refuse,
)
from unmask.decoding.options import OPTIONS

if TYPE_CHECKING:
    from unmask.studies.dependence import StudySize

LIMIT = 20


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "theory",
        help="check Lemma 1 and the Sensitivity-Dependency Bound; measure dependence on a model",
        description="Enumerates random small joint distributions. The expected KL(current || "
        "previous) must equal the information gain and must not exceed the mutual information. "
        "Prints the largest violation, counter-examples for the other direction of the KL, and "
        "what the bound does and does not say. Then checks what the free "
        "position of eb costs. Exits with 1 if a violation exceeds rounding. "
        "With --model it studies a model instead. At some forwards of each run it fixes one mask "
        "after another and measures how far all other positions move. It prints how well the "
        "entropy H, the instability D, and D given H predict that dependence.",
        epilog=examples(
            "unmask theory",
            "unmask theory --model embedded --task words --length 32 --block full",
        ),
    )
    option = command.add_argument
    option("--cases", type=int, default=5000, metavar="N", help="number of cases (default: 5000)")
    option("--json", action="store_true", help="print the numbers as JSON")
    model = command.add_argument_group("on a model")
    option = model.add_argument
    option("--model", metavar="PATH", help="checkpoint folder or hub id, or embedded")
    option("--task", metavar="NAME", help="task of the prompts; 'unmask tasks' lists them")
    option("--preset", metavar="NAME", help="prompt preset (default: paper, else the first)")
    option("--data", type=Path, metavar="DIR", help="folder of benchmark files (default: the hub)")
    for flag, default, what in (
        ("--limit", LIMIT, "use the first N prompts"),
        ("--canvases", 4, "canvases of each run, spread over its forwards"),
        ("--fixed", 32, "masks to fix in each canvas, spread over it"),
        ("--batch-size", 8, "canvases per forward"),
    ):
        help_text = f"{what} (default: {default})"
        option(flag, type=positive, default=default, metavar="N", help=help_text)
    option("--device", metavar="NAME", help="device (default: cuda if there is one, else cpu)")
    option("--dry-run", action="store_true", help="print the cost and stop")
    defaults = {**PRESET, "seed": "0; also of the random cases"}
    add_options(model, [name for name in OPTIONS if name != "cache"], defaults)
    add_import(model)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check the bound, or study a model, and print a report."""
    if arguments.model is not None:
        return _study(arguments)
    refuse({"--task needs --model; for the model in the package: --model embedded": arguments.task})
    from dataclasses import asdict

    from unmask.studies.free_slot import check_free_slot, free_slot_lines
    from unmask.studies.theory import TOLERANCE, check, lines

    seed = read_options(arguments).seed or 0
    result, free = check(arguments.cases, seed), check_free_slot(arguments.cases, seed)
    if arguments.json:
        told = {"largest_violation": result.largest_violation, **asdict(result)}
        told["free_slot"] = {"largest_violation": free.largest_violation, **asdict(free)}
        print(json.dumps(told, indent=2))
    else:
        print("\n".join([*lines(result), *free_slot_lines(free)]))
    holds = result.largest_violation < TOLERANCE and free.largest_violation < TOLERANCE
    return 0 if holds else 1


def _study(arguments: argparse.Namespace) -> int:
    from unmask.cli.options import shown_count
    from unmask.lab.benchmarks import benchmark
    from unmask.lab.sweep.grid import Setting
    from unmask.lab.sweep.plan import Sessions, work_of
    from unmask.models.load import usable_device
    from unmask.studies.dependence import StudySize, study
    from unmask.studies.dependence_report import lines, record

    refuse({"the study of a model needs prompts; give --task": arguments.task is None})
    options, size = (
        read_options(arguments),
        StudySize(arguments.canvases, arguments.fixed, arguments.batch_size),
    )
    names = (arguments.model, arguments.task)
    setting = Setting(*names, options, arguments.preset, arguments.limit)
    session = Sessions().of(setting)
    work = work_of(setting, session, benchmark(arguments.task).load(arguments.data))
    requests = [work.request(ask) for ask in work.asks]
    cost = _cost(size, [work.trial.length] * len(requests))
    print(cost, file=sys.stderr if arguments.json and not arguments.dry_run else sys.stdout)
    if arguments.dry_run:
        return 0
    session.load_on(usable_device(arguments.device))
    with shown_count(size.canvases * len(requests)) as progress:
        result = study(session.model(options), requests, size, progress)
    if arguments.json:
        about = {"rule": work.trial.rule, "task": work.trial.task, "model": work.trial.model}
        print(json.dumps({**about, "length": work.trial.length, **record(result)}, indent=2))
    else:
        print("\n".join(lines(result)))
    return 0


def _cost(size: StudySize, lengths: list[int]) -> str:
    most = size.most_forwards(lengths)
    return (
        f"{len(lengths)} prompts, {size.canvases} canvases of each run, {size.fixed} masks fixed "
        f"in each: at most {most:,} forward passes over one canvas, {size.batch_size} at once"
    )
