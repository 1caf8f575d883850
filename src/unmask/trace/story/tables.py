"""Aligned columns of text, folded where they are long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Paint = Callable[..., str]  # takes a text and the names of its styles
GAP = "  "


@dataclass(frozen=True)
class Row:
    """Cells of a row, and how it is painted."""

    cells: tuple[str, ...]
    styles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A head and rows; columns named in `left` are flushed left, the others right."""

    head: tuple[str, ...]
    rows: tuple[Row, ...]
    left: frozenset[str] = field(default_factory=frozenset)

    def lines(self, paint: Paint, width: int = 80) -> list[str]:
        """One line for the head and one for each row, cut where they are too long."""
        every = [self.head, *(row.cells for row in self.rows)]
        widths = [max(len(cells[i]) for cells in every) for i in range(len(self.head))]
        styled = [Row(self.head, ("dim",)), *self.rows]
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
    """Which rows to show: all, or those that are wanted, the first and the last; None: a gap."""
    count = len(wanted)
    if count <= most:
        return list(range(count))
    kept = {0, *range(count - tail, count)}
    others = [i for i, flag in enumerate(wanted) if flag and i not in kept]
    kept |= set(others[-(most - len(kept)) :])
    found: list[int | None] = []
    for i in sorted(kept):
        if found and found[-1] is not None and found[-1] != i - 1:
            found.append(None)
        found.append(i)
    return found
