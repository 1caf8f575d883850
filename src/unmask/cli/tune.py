"""`unmask tune`: finds the knobs of a rule, and the block, for a model and a task."""

from __future__ import annotations

import argparse
from typing import Any

from unmask.cli.lab_options import add_running, add_task, options_of, progress
from unmask.cli.options import PRESET, add_import, add_options, examples, read_options
from unmask.decoding.options import OPTIONS
from unmask.errors import LabError


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "tune",
        help="find the knobs of a rule, and the block, for a model and a task",
        description="Successive halving on a calibration split: it tries all settings on a few "
        "examples, then the better half on twice as many, and so on. With --nfe it looks for "
        "the best accuracy within that many forward passes, else for the largest area under the "
        "accuracy-parallelism curve (AUP). Then it decodes held-out examples with the winner, and "
        "with the whole grid to see how much better another setting would be (the regret).",
        epilog=examples(
            "unmask tune --task words --nfe 12 --budget 600 --block full,16",
            "unmask tune --task words --selection klass --lam 0,1 --nfe 20",
            'unmask tune --task words --rule "margin | swd({0,1,5}) | klass({0.8,0.9}, kl=0.01)"',
        ),
    )
    add_task(command)
    option = command.add_argument
    option(
        "--rule", action="append", metavar="RULE",
        help="rule with the values to try in braces; may be repeated (default: made of --score, "
        "--lam and --selection)",
    )  # fmt: skip
    option("--score", metavar="NAME", help="score (default: confidence)")
    option(
        "--selection", metavar="NAME",
        help="selection, which brings the values of its knobs to try (default: eb)",
    )  # fmt: skip
    option("--lam", metavar="X,...", help="values of swd's lam to try (default: 0,0.5,1,5,15,30)")
    add_import(command)
    blocks = "blocks to try (default: the recipe's if it has one, else full,32)"
    option("--block", metavar="N,...", help=blocks)
    option("--nfe", type=float, metavar="N", help="most forward passes per example, on average")
    for flag, default, what in (
        ("--budget", 2000, "examples to decode, in all, for tuning"),
        ("--calibration", 50, "examples to tune on"),
        ("--held-out", 100, "examples to report on"),
    ):
        option(flag, type=int, default=default, metavar="N", help=f"{what} (default: {default})")
    option("--no-regret", action="store_true", help="skip the comparison with the whole grid")
    others = [name for name in OPTIONS if name not in ("rule", "block")]
    add_options(command.add_argument_group("decoding"), others, PRESET)
    add_running(command.add_argument_group("running"), cluster=False)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Tune, then report on held-out examples."""
    from unmask.lab.benchmarks import benchmark
    from unmask.lab.grading import Tools
    from unmask.lab.sweep.grid import Setting
    from unmask.lab.tune import Tuner, candidates, split

    if arguments.held_out < 1:
        raise LabError(f"--held-out must be >= 1, got {arguments.held_out}")
    grid = candidates(_rules(arguments), _blocks(arguments.block))
    examples = benchmark(arguments.task).load(arguments.data)
    calibration, held_out = split(examples, arguments.calibration)
    arguments.rule = arguments.block = None  # the arms have them
    usual = Setting(arguments.model, arguments.task, read_options(arguments), arguments.preset)
    options = options_of(arguments)
    graders = Tools.of([benchmark(arguments.task)], arguments.allow_unsandboxed)
    with graders as tools, progress() as bars:
        tuner = Tuner(usual, calibration, arguments.budget, options, tools, bars, print)
        if arguments.nfe is None:
            winner = tuner.by_area(grid)
        else:
            winner = tuner.by_forwards(grid, arguments.nfe)
        rivals = () if arguments.no_regret else grid
        tuner.report(winner, held_out[: arguments.held_out], rivals, arguments.nfe)
    return 0


def _rules(arguments: argparse.Namespace) -> list[str]:
    """The rules with braces: those that were given, or the short form."""
    from unmask.lab.tune import LAMS, short_form

    short = ("score", "selection", "lam")
    given = [f"--{name}" for name in short if getattr(arguments, name) is not None]
    if arguments.rule:
        if given:
            raise LabError(f"--rule is a whole rule, so leave out {' and '.join(given)}")
        return list(arguments.rule)
    lams = LAMS if arguments.lam is None else arguments.lam
    try:
        for part in lams.split(","):
            float(part)
    except ValueError:
        raise LabError(f"--lam takes numbers separated by commas, got {lams!r}") from None
    return [short_form(arguments.score or "confidence", arguments.selection or "eb", lams)]


def _blocks(text: str | None) -> list[Any]:
    parts = [] if text is None else text.split(",")
    return [OPTIONS["block"].parse("--block", part) for part in parts]
