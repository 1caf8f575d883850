"""`unmask figure`: the paper's Figure 1 for one position, and its Figure 2 for one step."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from unmask.cli.explain import add_place
from unmask.cli.options import add_import, examples
from unmask.errors import RequestError


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "figure",
        help="draw one position over the steps, or what SWD does in one step",
        description="Draws one position over the steps: confidence and modulated score as lines, "
        "the instability D as a grey area, and the step that committed it. A second trace of the "
        "same prompt, such as one without SWD, is drawn below on the same axes. Without --position "
        "or --token, the position is the one that SWD held back longest in the last trace. With "
        "--pipeline it draws one step: the score, D, exp(-lam D) and the modulated score of its "
        "candidates, and what is committed with and without SWD. Needs unmask[plot].",
        epilog=examples(
            "unmask figure eb.trace swd.trace --position 30 -o figure.svg",
            "unmask figure swd.trace --pipeline",
        ),
    )
    option = command.add_argument
    option("trace", metavar="TRACE", help="a file written by 'unmask run --trace'")
    option("second", nargs="?", metavar="TRACE2", help="a second trace of the same prompt")
    add_import(command)
    add_place(command).add_argument(
        "--pipeline", action="store_true", help="draw one step instead of one position"
    )
    option(
        "--step",
        type=int,
        metavar="T",
        help="the step of --pipeline, counted from 1 (default: one in which SWD changes the "
        "choice: it holds back the surest prediction, if possible one that changes later)",
    )
    option(
        "-o",
        "--output",
        metavar="FILE",
        help=".svg, .png or .pdf file (default: TRACE-N.svg, or TRACE-stepT.svg)",
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Draw the figure and print the name of its file."""
    print(_pipeline(arguments) if arguments.pipeline else _position(arguments))
    return 0


def _position(arguments: argparse.Namespace) -> Path:
    from unmask.cli.explain import place
    from unmask.trace import Trace
    from unmask.trace.figure import commitment_figure
    from unmask.trace.story.locate import checked_position, checked_steps
    from unmask.trace.story.overview import telling_position

    if arguments.step is not None:
        raise RequestError("--step is for --pipeline; a position is drawn over all steps")
    files = [arguments.trace] + ([] if arguments.second is None else [arguments.second])
    traces = [Trace.read(file) for file in files]
    position = place(traces[0], arguments)
    if position is None:
        position = telling_position(checked_steps(traces[-1]))
    for trace in traces:
        checked_position(trace, position)
    file = _file(arguments, str(position))
    commitment_figure(traces, position, file)
    return file


def _pipeline(arguments: argparse.Namespace) -> Path:
    from unmask.trace import Trace
    from unmask.trace.figure_pipeline import StepPipeline, pipeline_figure, telling_step

    if arguments.second is not None:
        raise RequestError(
            f"--pipeline draws a step of one trace, got two: {arguments.trace} {arguments.second}"
        )
    trace = Trace.read(arguments.trace)
    pipeline = StepPipeline.of(trace, arguments.step)
    file = _file(arguments, f"step{pipeline.step}")
    pipeline_figure(pipeline, file)
    if arguments.step is None and telling_step(trace) is None:
        same = "lam = 0 would have committed the same in every step"
        print(f"SWD changed nothing: {same}; this is step {pipeline.step}", file=sys.stderr)
    return file


def _file(arguments: argparse.Namespace, name: str) -> Path:
    """The file of --output, else one beside the trace."""
    trace = Path(arguments.trace)
    return Path(arguments.output or trace.with_name(f"{trace.stem}-{name}.svg"))
