"""Commands as a process of their own would run them, without the seconds that its start takes."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from unmask.cli import main
from unmask.lab.report.rule_parts import parts_of
from unmask.rules import registry


def unmask(folder: Path, *commands: Sequence[str], path: str | Path = "") -> tuple[int, str, str]:
    """Run commands in a folder; stops at the first that fails. Gives its code and what was told.

    The parts that they import are forgotten afterwards, as if a process had ended.
    """
    out, err = _stream(), _stream()
    with new_process(path), inside(folder), redirect_stdout(out), redirect_stderr(err):
        code = next(filter(None, map(_run, commands)), 0)
    return code, *(each.buffer.getvalue().decode() for each in (out, err))


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder, then go back (contextlib.chdir needs Python 3.11)."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def new_process(path: str | Path = "") -> Iterator[None]:
    """No part and no module that is imported here stays; `path` is on Python's path."""
    registry.kinds()
    paths = [str(path), *sys.path] if path else list(sys.path)
    before = set(registry.TABLE)
    with patch.object(sys, "path", paths), patch.object(sys, "dont_write_bytecode", True):
        try:
            yield
        finally:
            for part in registry.TABLE.keys() - before:
                kind = registry.TABLE.pop(part)
                if kind.target.__module__ != "__main__":
                    sys.modules.pop(kind.target.__module__, None)
            parts_of.cache_clear()


def _run(command: Sequence[str]) -> int:
    try:
        return main(list(command))
    except SystemExit as stopped:  # argparse refuses its arguments
        return int(stopped.code or 0)


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
