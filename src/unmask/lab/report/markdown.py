"""A report as Markdown, with links to its plots."""

from __future__ import annotations

import re
from collections.abc import Iterator

from unmask.lab.report.blocks import Block, Items, Picture, ReportTable, Section
from unmask.lab.report.wording import clean

SPECIAL = re.compile(r"([\\`*|~]|\](?=\()|(?<![^\W_])_|_(?![^\W_]))")


def markdown(report: Section) -> str:
    """The whole report as Markdown."""
    return "\n".join(_section(report, 1)).rstrip() + "\n"


def escaped(text: str) -> str:
    """A text with all characters escaped that Markdown or HTML would interpret."""
    plain = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return SPECIAL.sub(r"\\\1", plain)


def _section(section: Section, depth: int) -> Iterator[str]:
    yield f"{'#' * min(depth, 6)} {escaped(section.title)}\n"
    for block in section.blocks:
        yield from _block(block, depth)


def _block(block: Block, depth: int) -> Iterator[str]:
    if isinstance(block, Section):
        yield from _section(block, depth + 1)
    elif isinstance(block, ReportTable):
        yield from _table(block)
    elif isinstance(block, Items):
        yield from (f"- {escaped(item)}" for item in block.items)
        yield ""
    elif isinstance(block, Picture):
        yield f"![{escaped(block.alt)}]({block.name}.svg)\n"
        yield f"{escaped(block.caption)}\n"
    else:
        yield f"{escaped(block.text)}\n"


def _table(table: ReportTable) -> Iterator[str]:
    yield f"**{escaped(table.caption)}**\n"
    yield _line(list(_heads(table)))
    yield _line(["---" if column.left else "---:" for column in table.columns])
    for row in table.rows:
        head, *others = row
        named = ", ".join(text for text in (head.text, head.small) if text)
        yield _line([escaped(named), *(escaped(cell.plain) for cell in others)])
    yield ""
    yield from (f"{escaped(note)}\n" for note in table.notes)


def _heads(table: ReportTable) -> Iterator[str]:
    """The headings. Only the first column of a group names the group."""
    before = ""
    for column in table.columns:
        names = column.group if column.group != before else "", column.name
        yield escaped(": ".join(name for name in names if name))
        before = column.group


def _line(texts: list[str]) -> str:
    return f"| {' | '.join(texts)} |"
