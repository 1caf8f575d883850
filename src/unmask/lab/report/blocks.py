"""What a report is made of, before it is Markdown or HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Tone = Literal["", "gain", "loss"]


@dataclass(frozen=True)
class Cell:
    """A figure, and smaller beside it what belongs to it."""

    text: str
    small: str = ""
    tone: Tone = ""

    @property
    def plain(self) -> str:
        return f"{self.text} {self.small}".strip()


@dataclass(frozen=True)
class Column:
    """One column; neighbours of the same group share a heading."""

    name: str
    group: str = ""
    left: bool = False  # words rather than figures


@dataclass(frozen=True)
class Table:
    """The cells of the first column head their rows."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.columns) for row in self.rows), self.caption


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
    """A plot that lies beside the report as NAME.svg and NAME.png."""

    name: str
    caption: str
    alt: str


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    title: str
    blocks: tuple[Block, ...]


Block: TypeAlias = Table | Text | Items | Picture | Section


def columns(*names: str, left: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """Columns without groups; the first, and those in `left`, hold words."""
    return tuple(Column(name, left=not i or name in left) for i, name in enumerate(names))


def cells(*texts: str) -> tuple[Cell, ...]:
    """A row of plain cells."""
    return tuple(Cell(text) for text in texts)
