"""The command line: one file per command, each imported only when it runs."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from itertools import takewhile
from typing import Any, NoReturn

from unmask import __version__
from unmask.cli.options import ExamplesFormatter, Switch, import_all
from unmask.errors import UnmaskError, did_you_mean

COMMANDS = (
    "demo", "run", "replay", "explain", "figure", "page", "serve", "eval", "compare", "arena",
    "dissect", "sweep", "report", "tune", "lm-eval", "score", "export", "tasks", "models",
    "rules", "theory", "conformance", "doctor",
)  # fmt: skip

LONGEST = 1200  # characters of a message; the longest of ours list all names of a kind


class OneLineParser(argparse.ArgumentParser):
    """A parser that prints its errors in one line, like all other errors, and keeps examples."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"formatter_class": ExamplesFormatter, **options})

    def error(self, message: str) -> NoReturn:
        stop = "" if message.endswith("?") else ";"
        self.exit(2, f"{self.prog}: {in_one_line(message)}{stop} see '{self.prog} --help'\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's, but a command itself refuses what it does not know."""
        self._refuse_values_of_switches(sys.argv[1:] if args is None else args)
        arguments, unknown = super().parse_known_args(args, namespace)
        if unknown:
            known = [flag for action in self._actions for flag in action.option_strings]
            hint = did_you_mean(unknown[0].partition("=")[0], known, cutoff=0.7)
            self.error(f"unknown argument {unknown[0]!r}{hint}")
        return arguments, unknown

    def _refuse_values_of_switches(self, given: Sequence[str]) -> None:
        """Refuse `--pack false`, whose value would be taken for the prompt."""
        options = list(takewhile(lambda argument: argument != "--", given))
        for action in self._actions:
            if isinstance(action, Switch) and (value := action.value_in(options)) is not None:
                wrong = f"takes no value, got {value!r}; {action.forms}"
                self.error(str(argparse.ArgumentError(action, wrong)))

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """As argparse's, which takes `--option=--` for an option with an empty list."""
        if action.option_strings and arg_strings == ["--"]:
            raise argparse.ArgumentError(action, "expected one argument")
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """As argparse's, but it suggests the nearest name."""
        if action.choices is not None and value not in action.choices:
            known = [str(each) for each in action.choices]
            hint = did_you_mean(str(value), known) or ";"
            raise argparse.ArgumentError(
                action, f"unknown {value!r}{hint} known: {', '.join(known)}"
            )


def in_one_line(message: object) -> str:
    """A message without line ends, which the name of a file may hold, and not too long."""
    text = " ".join(str(message).splitlines())
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}...{text[-LONGEST // 2 :]}"


def parser() -> argparse.ArgumentParser:
    """The whole command line; built without importing torch."""
    top = OneLineParser(
        prog="unmask",
        description="Decoding rules for masked diffusion language models.",
        epilog="'unmask COMMAND --help' lists the options of a command.",
    )
    top.add_argument("--version", action="version", version=f"unmask {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    for name in COMMANDS:
        import_module(f"unmask.cli.{name.replace('-', '_')}").add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns 0, 1 if a check failed, or 2 for wrong arguments."""
    try:
        return _run(_read(argv))
    except KeyboardInterrupt:  # before the command began
        print("unmask: interrupted", file=sys.stderr)
        return 130


def _read(argv: Sequence[str] | None) -> argparse.Namespace:
    top = parser()
    try:
        " ".join(sys.argv[1:] if argv is None else argv).encode()
    except UnicodeEncodeError:
        top.error("an argument is not UTF-8 text")
    arguments = top.parse_args(argv)
    if arguments.command is None:  # after unknown options, which may be a mistyped --version
        top.error("a COMMAND is missing")
    if getattr(arguments, "model", None) == "":  # such as a variable of a shell that is not set
        top.error("--model must not be empty")
    return arguments


def _run(arguments: argparse.Namespace) -> int:
    warnings.showwarning = _show_warning
    if isinstance(sys.stdout, TextIOWrapper):  # "?" for characters that a terminal cannot show
        sys.stdout.reconfigure(errors="replace")
    if sys.stdout is None and arguments.command != "serve":  # what it prints would be lost
        print(f"unmask {arguments.command}: stdout is closed; redirect it", file=sys.stderr)
        return 1
    try:
        import_all(arguments)
        code: int = arguments.run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except UnmaskError as error:
        print(f"unmask {arguments.command}: {in_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        wipe = "\r\x1b[K" if sys.stderr.isatty() else ""  # a count may stand on this line
        how = getattr(arguments, "resume", lambda _: "")(arguments)
        print(f"{wipe}unmask {arguments.command}: interrupted{how}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader closed the pipe, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        print(f"unmask {arguments.command}: not enough memory", file=sys.stderr)
        return 1
    except OSError as error:  # a full disk, a closed file
        print(f"unmask {arguments.command}: {in_one_line(error)}", file=sys.stderr)
        return 1
    except Exception as error:
        from unmask.rules.plugins import part_failure

        if not (failure := part_failure(error)):
            raise
        print(f"unmask {arguments.command}: {failure}", file=sys.stderr)
        return 2
    return code


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"warning: {message}", file=sys.stderr)
