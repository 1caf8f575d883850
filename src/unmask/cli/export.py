"""`unmask export`: a rule in the form that another program takes."""

from __future__ import annotations

import argparse
from importlib import import_module

# each has a module of its own, export_NAME, with `add`
EXPORTS = ("sglang", "custom_generate")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and what it can export to."""
    command = subparsers.add_parser(
        "export",
        help="write a rule in the form that another program takes",
        description="Writes files for programs that decode by themselves, so that they decode by "
        "a rule of unmask, and prints how to call them.",
        epilog="'unmask export TARGET --help' tells more about a target.",
    )
    targets = command.add_subparsers(dest="target", metavar="TARGET", required=True)
    for name in EXPORTS:
        import_module(f"unmask.cli.export_{name}").add(targets)
