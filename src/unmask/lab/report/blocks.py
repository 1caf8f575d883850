"""The blocks of a report: tables, paragraphs, lists, pictures and sections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Tone = Literal["", "gain", "loss"]


@dataclass(frozen=True)
class TableCell:
    """A text of a table, and a remark in small print behind it."""

    text: str
    small: str = ""
    tone: Tone = ""

    @property
    def plain(self) -> str:
        return f"{self.text} {self.small}".strip()


@dataclass(frozen=True)
class Column:
    """One column. Neighbouring columns of the same group share a heading."""

    name: str
    group: str = ""
    left: bool = False  # flushed left, as words are; figures are flushed right


@dataclass(frozen=True)
class ReportTable:
    """A table whose first column holds the headings of its rows."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.columns) for row in self.rows), self.caption


class Notes:
    """The footnotes of a table, each printed once."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, text: str) -> str:
        """The mark of a footnote, such as (1)."""
        if text not in self.texts:
            self.texts.append(text)
        return f"({self.texts.index(text) + 1})"

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(f"{self.mark(text)} {text}" for text in self.texts)


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """A plot in the files NAME.svg and NAME.png beside the report."""

    name: str
    caption: str
    alt: str


@dataclass(frozen=True)
class Section:
    """A heading and the blocks under it."""

    title: str
    blocks: tuple[Block, ...]


Block: TypeAlias = ReportTable | Text | Items | Picture | Section


def columns(*names: str, left: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """Columns without groups; the first, and those in `left`, hold words."""
    return tuple(Column(name, left=not i or name in left) for i, name in enumerate(names))


def cells(*texts: str) -> tuple[TableCell, ...]:
    """A row of plain cells."""
    return tuple(TableCell(text) for text in texts)
