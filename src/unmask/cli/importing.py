"""The option `--import`, which loads rule parts of the user."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_import(group: argparse._ActionsContainer) -> None:
    """Add the option; `main` imports the modules before the command runs."""
    group.add_argument(
        "--import", dest="imports", action="append", default=[], metavar="FILE",
        help="run a Python file, or import a module, that registers rule parts; may be repeated",
    )  # fmt: skip


def import_all(arguments: argparse.Namespace) -> None:
    """Import the named files and modules in order, and make the paths of files absolute."""
    names: list[str] = getattr(arguments, "imports", [])
    if names:
        from unmask.rules.plugins import import_parts, is_file

        for name in names:
            import_parts(name)
        arguments.imports = [str(Path(n).resolve()) if is_file(n) else n for n in names]
