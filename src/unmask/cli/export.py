"""`unmask export`: writes a rule for another program."""

from __future__ import annotations

import argparse
from importlib import import_module

# the module export_NAME of each has `add`
EXPORTS = ("sglang", "custom_generate")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and its targets."""
    command = subparsers.add_parser(
        "export",
        help="write a rule for another program",
        description="Writes files that make another program decode by a rule of unmask, and "
        "prints how to call that program.",
        epilog="'unmask export TARGET --help' lists the options of a target.",
    )
    targets = command.add_subparsers(dest="target", metavar="TARGET", required=True)
    for name in EXPORTS:
        import_module(f"unmask.cli.export_{name}").add(targets)
