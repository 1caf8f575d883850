"""`unmask page`: one or two traces as an HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

from unmask.cli.options import examples
from unmask.errors import RequestError


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "page",
        help="write an HTML page that plays one trace, or two side by side",
        description="Writes one HTML file that needs no other file and no network. The page plays "
        "the canvas step by step, colours tokens by confidence, instability, step or score, and "
        "shows each token's numbers, its history and the queue of candidates. It shows two traces "
        "side by side and marks their first difference. Without TRACE the page asks for files.",
        epilog=examples(
            'unmask run "Sort: owl, hen, fox." --trace a.trace',
            "unmask page a.trace -o a.html",
        ),
    )
    option = command.add_argument
    option(
        "traces", nargs="*", type=Path, metavar="TRACE", help="one or two files of 'run --trace'"
    )
    output = "file to write (default: name of the first trace with .html)"
    option("-o", "--output", type=Path, metavar="FILE", help=output)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the page and print its name."""
    from unmask.page.build import TraceFile, page, write

    traces: list[Path] = arguments.traces
    if len(traces) > 2:
        raise RequestError(f"a page shows one or two traces, got {len(traces)}")
    output = arguments.output or _default(traces)
    write(page([TraceFile.read(trace) for trace in traces]), output)
    print(f"written: {output}")
    return 0


def _default(traces: list[Path]) -> Path:
    if not traces:
        return Path("unmask.html")
    return traces[0].with_name(f"{traces[0].name.removesuffix('.trace')}.html")
