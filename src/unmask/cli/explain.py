"""`unmask explain`: why a position got its token when it did, from a trace."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from typing import TYPE_CHECKING

from unmask.cli.importing import add_import

if TYPE_CHECKING:
    from unmask.trace import Trace
    from unmask.trace.story.telling import Telling


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "explain",
        help="tell why a position got its token when it did",
        description="Without more: the run step by step, and which positions are worth asking "
        "about. With a position or a word: its predictions, confidence and instability, who was "
        "ahead of it, why the rule took it then, and what SWD changed against lam = 0. With "
        "--step: that step alone.",
        epilog="example: unmask run PROMPT --trace a.trace && unmask explain a.trace --token 42",
    )
    command.add_argument("trace", metavar="TRACE", help="a file of 'unmask run --trace'")
    add_place(command)
    command.add_argument("--step", type=int, metavar="T", help="one step, counted from 1")
    add_import(command)
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def add_place(command: argparse.ArgumentParser, required: bool = False) -> None:
    """The options that say which position is meant."""
    which = command.add_mutually_exclusive_group(required=required)
    which.add_argument(
        "--position", type=int, metavar="N", help="of the canvas, from 0, the prompt included"
    )
    which.add_argument("--token", metavar="WORD", help="the position that ended as this word")


def run(arguments: argparse.Namespace) -> int:
    """Tell of a position, a step or the run."""
    from unmask.text.terminal import Painter, has_colour
    from unmask.trace import Trace
    from unmask.trace.story.locate import checked_step

    trace = Trace.read(arguments.trace)
    position = place(trace, arguments)
    if arguments.step is not None:
        checked_step(trace, arguments.step)
    told = _told(trace, position, arguments.step)
    if arguments.json:
        print(json.dumps(told.record, ensure_ascii=False, indent=2))
    else:
        width = min(shutil.get_terminal_size((80, 24)).columns, 100)
        print("\n".join(told.lines(Painter(has_colour()), width)))
    return 0


def place(trace: Trace, arguments: argparse.Namespace) -> int | None:
    """The position that is meant; of several that ended as the word, the first, saying so."""
    from unmask.trace.story.format import quoted, spans
    from unmask.trace.story.locate import checked_position, positions_of

    if arguments.position is not None:
        return checked_position(trace, arguments.position)
    if arguments.token is None:
        return None
    found = positions_of(trace, arguments.token)
    if len(found) > 1:
        several = f"{quoted(arguments.token)} ended at positions {spans(found)}"
        print(f"{several}; this is {found[0]}, for another one give --position", file=sys.stderr)
    return found[0]


def _told(trace: Trace, position: int | None, step: int | None) -> Telling:
    from unmask.trace.story.overview import tell_run
    from unmask.trace.story.position_story import tell_moment, tell_position
    from unmask.trace.story.step_story import tell_step

    if position is not None:
        return (
            tell_position(trace, position) if step is None else tell_moment(trace, position, step)
        )
    return tell_run(trace) if step is None else tell_step(trace, step)
