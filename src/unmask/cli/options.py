"""Options that several commands share, their checks, and a count on the terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unmask.decoding.options import LOADING, OPTIONS, DecodingOptions, Option
from unmask.errors import RequestError
from unmask.models.template_args import SWITCH_WORDS

if TYPE_CHECKING:
    from unmask.text.session import Session

MODEL = (*LOADING, "cache", "guidance")
DECODING = tuple(name for name in OPTIONS if name not in MODEL)
MOST_SHOWN = 8  # words that the usage line lists
PRESET = {
    **dict.fromkeys(("eos", "temperature", "top_p"), "the preset's"),
    "length": "the recipe's if it has one, else the preset's",
    "block": "the model's, else the recipe's if it has one, else the preset's",
}


# Options whose values have commas: each value is given by itself.
WITH_COMMAS = ("rule", "language", "template_args")


class Switch(argparse.Action):
    """A switch that takes no value: `--pack`, and `--no-pack` if it is not off by default."""

    def __init__(self, option_strings: list[str], dest: str, **more: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **more)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        off = option_string is not None and option_string.startswith("--no-")
        setattr(namespace, self.dest, "false" if off else "true")

    def format_usage(self) -> str:
        """The forms, for the usage line."""
        return " | ".join(self.option_strings)

    def value_in(self, arguments: Sequence[str]) -> str | None:
        """What is given to this switch as a value, as in `--pack=false` or `--pack false`."""
        for argument, following in pairwise([*arguments, ""]):
            flag, equals, value = argument.partition("=")
            if flag in self.option_strings and (equals or following.lower() in SWITCH_WORDS):
                return value if equals else following
        return None

    @property
    def forms(self) -> str:
        """How to write it, for messages."""
        more = "leave it out" if len(self.option_strings) == 1 else self.option_strings[1]
        return f"write {self.option_strings[0]}, or {more}"


class ExamplesFormatter(argparse.HelpFormatter):
    """Keeps the lines of a text that has several, so that examples can be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def examples(*commands: str) -> str:
    """Commands for the end of a help text, one per line."""
    return "\n".join(["examples:", *(f"  {command}" for command in commands)])


def add_options(
    group: argparse._ActionsContainer,
    names: Iterable[str],
    defaults: Mapping[str, str] | None = None,
    several: bool = False,
) -> None:
    """Add an argument for each of these options; with `several` it takes values with commas.

    `defaults` replaces the words for the default in the help text.
    """
    for name in names:
        option = OPTIONS[name]
        default = (defaults or {}).get(name, option.default)
        words = (
            f" ({', '.join(option.words)})"
            if several and name in ("cache", "dtype", "quantize")
            else ""
        )
        help_text = f"{option.help}{words} (default: {default})"
        flag = f"--{name.replace('_', '-')}"
        if several and name in WITH_COMMAS:
            group.add_argument(flag, action="append", metavar=option.metavar, help=help_text)
        elif option.kind == "switch" and not several:
            flags = [flag] if default == "off" else [flag, f"--no-{flag.removeprefix('--')}"]
            group.add_argument(*flags, action=Switch, help=help_text)
        elif option.kind == "word" and not several:
            shown = option.metavar if len(option.words) > MOST_SHOWN else None
            group.add_argument(flag, choices=option.words, metavar=shown, help=help_text)
        else:
            metavar = f"{option.metavar},..." if several else option.metavar
            group.add_argument(flag, metavar=metavar, help=help_text)


def add_language(group: argparse._ArgumentGroup) -> None:
    """Add short forms of --language."""
    forms = group.add_mutually_exclusive_group()
    option = partial(forms.add_argument, dest="language")
    regex = "the answer matches this regular expression"
    option("--regex", type=lambda text: f"regex:{text}", metavar="TEXT", help=regex)
    schema = "the answer is JSON that is valid under the JSON Schema in this file"
    option("--schema", type=_schema, metavar="FILE", help=schema)
    choice = "the answer is one of these texts"
    option("--choice", type=lambda text: f"choice:{text}", metavar="a,b,c", help=choice)


def _schema(path: str) -> str:
    from unmask.languages.notation import schema_file

    try:
        return schema_file(path)
    except RequestError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def given_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options that were given, by name, as values."""
    return {name: _parse(name, option, text) for name, option, text in _texts(arguments)}


def read_options(arguments: argparse.Namespace) -> DecodingOptions:
    """The options of one call."""
    return DecodingOptions.read(given_options(arguments))


def session_of(arguments: argparse.Namespace) -> Session:
    """The session of one call."""
    from unmask.text.session import Session

    return Session(
        arguments.model,
        options=read_options(arguments),
        device=arguments.device,
        context=arguments.context,
        control_tokens=arguments.control_tokens,
    )


def given_lists(arguments: argparse.Namespace) -> dict[str, list[Any]]:
    """The options that were given with commas, by name, as lists of values."""
    return {
        name: [
            _parse(name, option, part)
            for part in (text if name in WITH_COMMAS else text.split(","))
        ]
        for name, option, text in _texts(arguments)
    }


def _texts(arguments: argparse.Namespace) -> list[tuple[str, Option, Any]]:
    given = vars(arguments)
    return [
        (name, option, given[name])
        for name, option in OPTIONS.items()
        if given.get(name) is not None
    ]


def _parse(name: str, option: Option, text: str) -> Any:
    return option.parse(f"--{name.replace('_', '-')}", text)


def positive(text: str) -> int:
    """A whole number >= 1, as the type of an argument."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number >= 1, got {text!r}")
    return int(text)


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


def refuse(wrong: Mapping[str, bool]) -> None:
    """Raise the first message whose condition holds."""
    for message, holds in wrong.items():
        if holds:
            raise RequestError(message)


@contextmanager
def shown_count(total: int) -> Iterator[Callable[[int], None]]:
    """Shows a count on stderr if it is a terminal."""
    shown = sys.stderr.isatty()

    def show(done: int) -> None:
        if shown:
            print(f"\r{done}/{total}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if shown:
            print(file=sys.stderr)
