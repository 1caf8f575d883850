"""The command line: one file per command, each imported only when it runs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from unmask import __version__
from unmask.errors import UnmaskError

COMMANDS = ("demo", "run", "models", "rules", "theory", "conformance")


def parser() -> argparse.ArgumentParser:
    """The whole command line; built without importing torch."""
    top = argparse.ArgumentParser(
        prog="unmask",
        description="Decoding rules for masked diffusion language models.",
        epilog="'unmask COMMAND --help' tells more about a command.",
    )
    top.add_argument("--version", action="version", version=f"unmask {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        import_module(f"unmask.cli.{name}").add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 if all is well, 1 if what was checked failed, 2 for a wrong call."""
    arguments = parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except UnmaskError as error:
        print(f"unmask {arguments.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code
