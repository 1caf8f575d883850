"""`--import`: parts of one's own, in every command that reads rules."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_import(group: argparse._ActionsContainer) -> None:
    """`main` imports what is named before the command runs."""
    group.add_argument(
        "--import", dest="imports", action="append", default=[], metavar="FILE",
        help="run this Python file, or import this module, for the rule parts that it registers",
    )  # fmt: skip


def import_all(arguments: argparse.Namespace) -> None:
    """What was named, in that order; files get their whole path, for processes elsewhere."""
    names: list[str] = getattr(arguments, "imports", [])
    if names:
        from unmask.rules.plugins import import_parts, is_file

        for name in names:
            import_parts(name)
        arguments.imports = [str(Path(n).resolve()) if is_file(n) else n for n in names]
