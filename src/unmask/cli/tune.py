"""`unmask tune`: finds lam, gamma or tau, and the block, for a model and a task."""

from __future__ import annotations

import argparse

from unmask.cli.lab_options import add_running, add_task, options_of, progress
from unmask.cli.options import PRESET, add_import, add_options, read_options
from unmask.decoding.options import OPTIONS
from unmask.errors import LabError


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "tune",
        help="find lam, gamma or tau, and the block for a model and a task",
        description="Successive halving on a calibration split: it tries all settings on a few "
        "examples, then the better half on twice as many, and so on. With --nfe it looks for "
        "the best accuracy within that many forward passes, else for the largest area under the "
        "accuracy-parallelism curve (AUP). Then it decodes held-out examples with the winner, and "
        "with the whole grid to see how much better another setting would be (the regret).",
        epilog="example: unmask tune --task words --nfe 12 --budget 600 --block full,16",
    )
    add_task(command)
    option = command.add_argument
    option("--score", default="confidence", help="score (default: confidence)")
    add_import(command)
    selections = ("eb", "threshold")
    option("--selection", choices=selections, default="eb", help="selection (default: eb)")
    option("--lam", metavar="X,...", help="values of lam to try (default: 0,0.5,1,5,15,30)")
    option("--block", default="full,32", metavar="N,...", help="blocks to try (default: full,32)")
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

    blocks = [OPTIONS["block"].parse("--block", part) for part in arguments.block.split(",")]
    grid = candidates(arguments.score, arguments.selection, blocks, _lams(arguments.lam))
    examples = benchmark(arguments.task).load(arguments.data)
    calibration, held_out = split(examples, arguments.calibration)
    arguments.block = None
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


def _lams(text: str | None) -> list[float]:
    from unmask.lab.tune import LAMS

    if text is None:
        return list(LAMS)
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise LabError(f"--lam takes numbers separated by commas, got {text!r}") from None
