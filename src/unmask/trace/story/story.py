"""A story of a trace as text or JSON: a head line, sentences, a table, more sentences."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

Paint = Callable[..., str]  # takes a text and the names of its styles
GAP = "  "
FIRM = "\u00a0"  # a space without a line break
_TOGETHER = re.compile(r"(\d+ )?'[^']*'|D = \S+|lam = 0|\(x [^)]*\)")  # 23 ' pens'


@dataclass(frozen=True)
class Story:
    """The output of one call of `unmask explain`."""

    head: str
    facts: dict[str, Any]  # what the JSON holds besides the sentences
    before: Sequence[str] = ()
    table: TextTable | None = None
    after: Sequence[str] = ()
    note: str = ""  # the exact meaning of a word above

    @property
    def record(self) -> dict[str, Any]:
        """The story for JSON."""
        sentences = [self.head, *self.before, *self.after, *([self.note] if self.note else [])]
        return {**self.facts, "told": sentences}

    def lines(self, paint: Paint, width: int = 80) -> Iterator[str]:
        """The story as lines of text, none longer than the width."""
        yield from (paint(line, "bold") for line in _wrapped([self.head], width))
        yield from _wrapped(self.before, width)
        if self.table is not None and self.table.rows:
            yield ""
            yield from self.table.lines(paint, width)
            yield ""
        yield from _wrapped(self.after, width)
        yield from (paint(line, "dim") for line in _wrapped([self.note], width) if self.note)


def _wrapped(sentences: Iterable[str], width: int) -> Iterator[str]:
    """Wrap each sentence; the lines of a list item are indented."""
    for sentence in sentences:
        hang = "  " if sentence.startswith("- ") else ""
        whole = _TOGETHER.sub(lambda match: match[0].replace(" ", FIRM), sentence)
        for line in textwrap.wrap(
            whole, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False
        ):
            yield line.replace(FIRM, " ")


@dataclass(frozen=True)
class TextRow:
    """The cells of a row and its styles."""

    cells: tuple[str, ...]
    styles: tuple[str, ...] = ()


@dataclass(frozen=True)
class TextTable:
    """A head and rows; columns named in `left` are flushed left, other columns right."""

    head: tuple[str, ...]
    rows: tuple[TextRow, ...]
    left: frozenset[str]

    def folded(self, wanted: Sequence[bool], tail: int = 8, most: int = 24) -> TextTable:
        """The table with a row of dots for the rows that are left out."""
        dots = TextRow(("...", *[""] * (len(self.head) - 1)), ("dim",))
        shown = folded(wanted, tail, most)
        return replace(self, rows=tuple(dots if i is None else self.rows[i] for i in shown))

    def lines(self, paint: Paint, width: int = 80) -> list[str]:
        """A line for the head and one for each row, cut at the width."""
        styled = [TextRow(self.head, ("dim",)), *self.rows]
        widths = [max(len(row.cells[i]) for row in styled) for i in range(len(self.head))]
        return [paint(_cut(self._line(row.cells, widths), width), *row.styles) for row in styled]

    def _line(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        fitted = (
            text.ljust(width) if name in self.left else text.rjust(width)
            for name, text, width in zip(self.head, cells, widths, strict=True)
        )
        return (GAP + GAP.join(fitted)).rstrip()


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 3] + "..."


def folded(wanted: Sequence[bool], tail: int = 8, most: int = 24) -> list[int | None]:
    """The rows to show: all, or the first, the last and those that are wanted; None is a gap."""
    count = len(wanted)
    if count <= most:
        return list(range(count))
    kept = {0, *range(count - tail, count)}
    others = [i for i, flag in enumerate(wanted) if flag and i not in kept]
    kept |= set(others[-(most - len(kept)) :])
    shown: list[int | None] = []
    for i in sorted(kept):
        if shown and shown[-1] is not None and shown[-1] != i - 1:
            shown.append(None)
        shown.append(i)
    return shown
