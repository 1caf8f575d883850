"""`unmask explain`: why a position of a trace got its token in its step."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from typing import TYPE_CHECKING

from unmask.cli.options import add_import, examples

if TYPE_CHECKING:
    from unmask.trace import Trace
    from unmask.trace.story.story import Story


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "explain",
        help="explain why a position got its token in its step",
        description="Explains a trace in sentences. Without options: a table of all steps, and "
        "positions worth a closer look. With --position or --token: the predictions of one "
        "position, its confidence and instability, the positions ahead of it, why the rule "
        "committed it in its step, and what SWD changed. With --step: that step only.",
        epilog=examples(
            'unmask run "Sort: owl, hen, fox." --trace a.trace',
            "unmask explain a.trace",
            "unmask explain a.trace --token owl",
        ),
    )
    command.add_argument("trace", metavar="TRACE", help="a file written by 'unmask run --trace'")
    add_place(command)
    command.add_argument("--step", type=int, metavar="T", help="explain one step, counted from 1")
    add_import(command)
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def add_place(command: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    """Add the options that choose a position; returns their group."""
    group = command.add_mutually_exclusive_group()
    option = group.add_argument
    option("--position", type=int, metavar="N", help="a position, counted from 0 with the prompt")
    option("--token", metavar="WORD", help="the first position whose final token is this word")
    return group


def run(arguments: argparse.Namespace) -> int:
    """Print the story of a position, a step or the run."""
    from unmask.text.terminal import Painter, has_colour
    from unmask.trace import Trace
    from unmask.trace.story.locate import checked_step

    trace = Trace.read(arguments.trace)
    position = place(trace, arguments)
    if arguments.step is not None:
        checked_step(trace, arguments.step)
    story = _story(trace, position, arguments.step)
    if arguments.json:
        print(json.dumps(story.record, ensure_ascii=False, indent=2))
    else:
        width = min(shutil.get_terminal_size((80, 24)).columns, 100)
        print("\n".join(story.lines(Painter(has_colour()), width)))
    return 0


def place(trace: Trace, arguments: argparse.Namespace) -> int | None:
    """The position of --position or --token; a message if --token matches several."""
    from unmask.trace.story.format import quoted, spans
    from unmask.trace.story.locate import checked_position, positions_of

    if arguments.position is not None:
        return checked_position(trace, arguments.position)
    if arguments.token is None:
        return None
    first, *others = positions_of(trace, arguments.token)
    if others:
        several = f"{quoted(arguments.token)} is the token of positions {spans([first, *others])}"
        print(f"{several}; this is {first}, use --position for another", file=sys.stderr)
    return first


def _story(trace: Trace, position: int | None, step: int | None) -> Story:
    from unmask.trace.story.overview import tell_run
    from unmask.trace.story.position_story import tell_moment, tell_position
    from unmask.trace.story.step_story import tell_step

    if position is not None:
        return (
            tell_position(trace, position) if step is None else tell_moment(trace, position, step)
        )
    return tell_run(trace) if step is None else tell_step(trace, step)
