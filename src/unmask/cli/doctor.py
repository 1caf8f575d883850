"""`unmask doctor`: examines the machine before a long run."""

from __future__ import annotations

import argparse
import json
import textwrap

from unmask.cli.options import add_options, examples, read_options
from unmask.decoding.options import LOADING
from unmask.embedded import NAME

WIDTH = 100


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "doctor",
        help="check the machine before a long run",
        description="Checks versions, device, memory, sandbox, browser and extras; whether the "
        "kernels in use agree with plain PyTorch; whether a batch gives each row what it "
        "gets alone; the time of a forward; and what fits into the memory. A line about "
        "something slow or missing says what to do. The exit code is 1 if something is at "
        "fault.",
        epilog=examples(
            "unmask doctor",
            "unmask doctor --model FOLDER --quantize int8",
        ),
    )
    option = command.add_argument
    model = "checkpoint folder or hub id (default: embedded, the model inside the package)"
    option("--model", default=NAME, metavar="PATH", help=model)
    option(
        "--device", metavar="NAME", help="torch device (default: cuda if there is one, else cpu)"
    )
    add_options(command, LOADING)
    option("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print every finding; 1 if one is a fault."""
    from unmask.doctor import examine
    from unmask.models.load import usable_device

    device, findings = usable_device(arguments.device), []
    for finding in examine(arguments.model, read_options(arguments), device):
        findings.append(finding)
        if not arguments.json:
            mend = f" -> {finding.mend}" if finding.mend else ""
            line = f"{finding.status:<8}{finding.name:<20}{finding.says}{mend}"
            print(_filled(line), flush=True)
    if arguments.json:
        print(json.dumps([vars(finding) for finding in findings], indent=2))
    return int(any(finding.status == "fault" for finding in findings))


def _filled(line: str) -> str:
    """The line in the page's width; paths, options and hub ids stay whole."""
    indent = " " * 28
    return textwrap.fill(
        line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
