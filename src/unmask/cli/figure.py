"""`unmask figure`: the paper's Figure 1 for one position of one or two traces."""

from __future__ import annotations

import argparse
from pathlib import Path

from unmask.cli.explain import add_place
from unmask.cli.options import add_import


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "figure",
        help="draw the confidence, instability and score of one position over the steps",
        description="Draws one position over the steps: confidence and modulated score as lines, "
        "the instability D as a grey area, and the step that committed it. A second trace of the "
        "same prompt, such as one without SWD, is drawn below on the same axes. Needs "
        "unmask[plot].",
        epilog="example: unmask figure eb.trace swd.trace --position 30 -o figure.svg",
    )
    option = command.add_argument
    option("trace", metavar="TRACE", help="a file written by 'unmask run --trace'")
    option("second", nargs="?", metavar="TRACE2", help="a second trace of the same prompt")
    add_import(command)
    add_place(command, required=True)
    option("-o", "--output", metavar="FILE", help=".svg, .png or .pdf file (default: TRACE-N.svg)")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Draw the figure and print the name of its file."""
    from unmask.cli.explain import place
    from unmask.trace import Trace
    from unmask.trace.figure import commitment_figure
    from unmask.trace.story.locate import checked_position

    files = [arguments.trace] + ([] if arguments.second is None else [arguments.second])
    traces = [Trace.read(file) for file in files]
    position = place(traces[0], arguments)
    assert position is not None, "the parser requires one"
    for trace in traces:
        checked_position(trace, position)
    file = Path(arguments.output or _beside(Path(arguments.trace), position))
    commitment_figure(traces, position, file)
    print(file)
    return 0


def _beside(trace: Path, position: int) -> Path:
    return trace.with_name(f"{trace.stem}-{position}.svg")
