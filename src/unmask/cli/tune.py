"""`unmask tune`: lam, gamma or tau, and the block, for a model and a task."""

from __future__ import annotations

import argparse

from unmask.cli.importing import add_import
from unmask.cli.lab_options import add_running, options_of, progress
from unmask.cli.options import PRESET, add_options, read_options
from unmask.decoding.options import OPTIONS
from unmask.embedded import NAME
from unmask.errors import LabError


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "tune",
        help="find lam, gamma or tau, and the block for a model and a task",
        description="Successive halving on a calibration split: all settings on a few examples, "
        "the better half on twice as many, and so on. With --nfe the best accuracy within so many "
        "forwards, else the best area under the accuracy-parallelism curve (AUP). The choice is "
        "then decoded on held-out examples and compared with the whole grid there (its regret).",
        epilog="example: unmask tune --task words --nfe 12 --budget 600 --block full,16",
    )
    command.add_argument("--task", required=True, metavar="NAME", help="see `unmask tasks`")
    command.add_argument(
        "--model", default=NAME, metavar="PATH", help="folder or hub id (embedded)"
    )
    command.add_argument("--preset", metavar="NAME", help="prompts (paper, or the task's own)")
    command.add_argument("--score", default="confidence", help="(confidence)")
    add_import(command)
    command.add_argument("--selection", choices=("eb", "threshold"), default="eb", help="(eb)")
    command.add_argument("--lam", metavar="XS", help="to choose from (0,0.5,1,5,15,30)")
    command.add_argument(
        "--block", default="full,32", metavar="NS",
        help="blocks to choose from, with commas (default: full,32)",
    )  # fmt: skip
    command.add_argument("--nfe", type=float, metavar="N", help="forwards an example may take")
    command.add_argument(
        "--budget", type=int, default=2000, metavar="N", help="example decodings to spend (2000)"
    )
    command.add_argument(
        "--calibration", type=int, default=50, metavar="N", help="examples to tune on (50)"
    )
    command.add_argument(
        "--held-out", type=int, default=100, metavar="N", help="examples to report on (100)"
    )
    command.add_argument(
        "--no-regret", action="store_true", help="skip the whole grid on held-out examples"
    )
    others = [name for name in OPTIONS if name not in ("rule", "block")]
    add_options(command.add_argument_group("decoding"), others, PRESET)
    add_running(command.add_argument_group("running"))
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Halve, then report on held-out examples."""
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


def _lams(given: str | None) -> list[float]:
    from unmask.lab.tune import LAMS

    if given is None:
        return list(LAMS)
    try:
        return [float(part) for part in given.split(",")]
    except ValueError:
        raise LabError(f"--lam takes numbers separated by commas, got {given!r}") from None
