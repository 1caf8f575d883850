"""What is told of a trace: a head line, sentences, a table, more sentences; as text or as JSON."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from unmask.trace.story.tables import Paint, Table

FIRM = "\u00a0"  # a space at which no line breaks
_TOGETHER = re.compile(r"(\d+ )?'[^']*'|D = \S+|lam = 0|\(x [^)]*\)")  # 23 ' pens'


@dataclass(frozen=True)
class Telling:
    """Everything that one call of `unmask explain` says."""

    head: str
    facts: dict[str, Any]  # what JSON holds beside the sentences
    before: Sequence[str] = ()
    table: Table | None = None
    after: Sequence[str] = ()
    note: str = ""  # what a word above means exactly

    @property
    def record(self) -> dict[str, Any]:
        """For JSON."""
        told = [self.head, *self.before, *self.after, *([self.note] if self.note else [])]
        return {**self.facts, "told": told}

    def lines(self, paint: Paint, width: int = 80) -> Iterator[str]:
        """For people, no line longer than the width."""
        yield from (paint(line, "bold") for line in _wrapped([self.head], width))
        yield from _wrapped(self.before, width)
        if self.table is not None and self.table.rows:
            yield ""
            yield from self.table.lines(paint, width)
            yield ""
        yield from _wrapped(self.after, width)
        yield from (paint(line, "dim") for line in _wrapped([self.note], width) if self.note)


def _wrapped(sentences: Iterable[str], width: int) -> Iterator[str]:
    """Each on lines of its own; an item of a list hangs."""
    for sentence in sentences:
        hang = "  " if sentence.startswith("- ") else ""
        whole = _TOGETHER.sub(lambda found: found[0].replace(" ", FIRM), sentence)
        for line in textwrap.wrap(
            whole, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False
        ):
            yield line.replace(FIRM, " ")
