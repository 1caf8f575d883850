"""`unmask figure`: the paper's Figure 1 for one position of a trace, or of two."""

from __future__ import annotations

import argparse
from pathlib import Path

from unmask.cli.explain import add_place
from unmask.cli.importing import add_import


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "figure",
        help="draw one position's confidence, instability, score and commitment over the steps",
        description="Confidence and modulated score as lines, the instability D as a grey area, "
        "and the moment of commitment, step by step. A second trace of the same prompt, such as "
        "one without SWD, is drawn below with the same axes. Needs unmask[plot].",
        epilog="example: unmask figure eb.trace swd.trace --position 30 -o figure.svg",
    )
    command.add_argument("trace", metavar="TRACE", help="a file of 'unmask run --trace'")
    command.add_argument("second", nargs="?", metavar="TRACE2", help="another one to compare")
    add_import(command)
    add_place(command, required=True)
    command.add_argument(
        "-o", "--output", metavar="FILE", help=".svg, .png or .pdf (beside TRACE, .svg)"
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Draw, and print where."""
    from unmask.cli.explain import place
    from unmask.trace import Trace
    from unmask.trace.figure import commitment_figure
    from unmask.trace.story.locate import checked_position

    given = [arguments.trace] + ([] if arguments.second is None else [arguments.second])
    traces = [Trace.read(file) for file in given]
    position = place(traces[0], arguments)
    assert position is not None, "the parser asks for one"
    for trace in traces:
        checked_position(trace, position)
    file = Path(arguments.output or _beside(Path(arguments.trace), position))
    commitment_figure(traces, position, file)
    print(file)
    return 0


def _beside(trace: Path, position: int) -> Path:
    return trace.with_name(f"{trace.stem}-{position}.svg")
