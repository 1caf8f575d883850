"""One fault: where it is planted, and which tests are nearest to it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Fault(NamedTuple):
    """One mistake in one file of src/unmask; `old` stands there exactly once."""

    name: str
    file: str
    old: str
    new: str
    also: tuple[str, ...] = ()  # folders of tests that are as near as the file's own
    first: str = ""  # the tests to run first, if the module has no file of tests of its own

    @property
    def tests(self) -> tuple[str, ...]:
        """The nearest tests, as the tests mirror the source tree: the module's, its folder's."""
        path = Path("tests", self.file)
        return (
            self.first or str(path.with_name(f"test_{path.name}")),
            str(path.parent),
            *self.also,
        )
