"""A report as one HTML file that contains its style and its plots."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from itertools import groupby

from unmask.lab.figures.plots import GREYS
from unmask.lab.report.blocks import Block, Column, Items, Picture, ReportTable, Section, TableCell
from unmask.lab.report.wording import clean
from unmask.trace.drawing import COLOURS

WIDE = 500  # points: a wider plot takes the whole row
# Colours of the plots and the CSS variables that replace them, for the light and dark themes.
NAMES = {
    "#ffffff": "page",
    "#000000": "ink",
    "#404040": "ink",
    "#e6e6e6": "line",
    **{colour.lower(): f"plot-{place}" for place, colour in enumerate(COLOURS, 1)},
    **{colour.lower(): f"grey-{place}" for place, colour in enumerate(GREYS, 1)},
}
_COLOUR = re.compile("|".join(NAMES))
_TAG = re.compile(r"<[^!?/][^<>]*>", re.DOTALL)
_ID = re.compile(r'(\bid="|url\(#|href="#)')


def page(report: Section, drawings: Mapping[str, str]) -> str:
    """The whole report as HTML; `drawings` are the SVG texts of its pictures by name."""
    style = files("unmask.lab.report").joinpath("page.css").read_text(encoding="utf-8")
    title = escaped(report.title)
    parts = [block for block in report.blocks if isinstance(block, Section)]
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{title}</title>",
        f"<style>\n{style}</style>",
        "</head>",
        "<body>",
        f"<header><h1>{title}</h1>",
        *(line for block in report.blocks for line in HtmlWriter(drawings).opening(block)),
        '<nav aria-label="Contents"><ul>',
        *(f'<li><a href="#part-{i}">{escaped(p.title)}</a></li>' for i, p in enumerate(parts, 1)),
        "</ul></nav></header>",
        "<main>",
        *HtmlWriter(drawings).parts(parts),
        "</main>",
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """A text with all characters escaped that HTML would interpret."""
    return escape(clean(text))


class HtmlWriter:
    """Writes blocks as HTML and numbers the tables."""

    def __init__(self, drawings: Mapping[str, str]) -> None:
        self.drawings = drawings
        self.tables = 0

    def opening(self, block: Block) -> Iterator[str]:
        """A block before the list of contents."""
        if not isinstance(block, Section):
            yield from self._block(block, 1)

    def parts(self, sections: list[Section]) -> Iterator[str]:
        """The sections of the list of contents."""
        for number, section in enumerate(sections, 1):
            yield f'<section id="part-{number}">'
            yield from self._section(section, 2)
            yield "</section>"

    def _section(self, section: Section, depth: int) -> Iterator[str]:
        yield f"<h{depth}>{escaped(section.title)}</h{depth}>"
        for plots, blocks in groupby(section.blocks, key=lambda block: isinstance(block, Picture)):
            yield from ['<div class="plots">'] * plots
            for block in blocks:
                yield from self._block(block, depth)
            yield from ["</div>"] * plots

    def _block(self, block: Block, depth: int) -> Iterator[str]:
        if isinstance(block, Section):
            yield from self._section(block, min(depth + 1, 6))
        elif isinstance(block, ReportTable):
            yield from self._table(block)
        elif isinstance(block, Items):
            yield "<ul>"
            yield from (f"<li>{escaped(item)}</li>" for item in block.items)
            yield "</ul>"
        elif isinstance(block, Picture):
            yield from self._picture(block)
        else:
            yield f"<p>{escaped(block.text)}</p>"

    def _picture(self, picture: Picture) -> Iterator[str]:
        drawing = self.drawings[picture.name]
        yield f'<figure class="{"wide plot" if width(drawing) > WIDE else "plot"}">'
        yield f'<div class="scroll" role="region" aria-label="{escape(picture.name)}" tabindex="0">'
        yield inlined(drawing, picture.name, clean(picture.alt))
        yield "</div>"
        name = escape(picture.name)
        links = f'<a href="{name}.svg">SVG</a>, <a href="{name}.png">PNG</a>'
        yield f"<figcaption>{escaped(picture.caption)} ({links})</figcaption>"
        yield "</figure>"

    def _table(self, table: ReportTable) -> Iterator[str]:
        self.tables += 1
        name = f"table-{self.tables}"
        yield '<figure class="table">'
        yield f'<figcaption id="{name}">{escaped(table.caption)}</figcaption>'
        yield f'<div class="scroll" role="region" aria-labelledby="{name}" tabindex="0">'
        yield f'<table aria-labelledby="{name}">'
        yield f"<thead>{''.join(_heads(table))}</thead>"
        yield "<tbody>"
        for row in table.rows:
            head, *others = row
            tds = "".join(
                _cell(table.columns[i], cell, _begins_group(table, i))
                for i, cell in enumerate(others, 1)
            )
            yield f'<tr><th scope="row"><span>{_inside(head)}</span></th>{tds}</tr>'
        yield "</tbody></table></div>"
        yield from (f'<p class="note">{escaped(note)}</p>' for note in table.notes)
        yield "</figure>"


def _heads(table: ReportTable) -> Iterator[str]:
    """One row of headings, or two if columns have groups."""
    if not any(column.group for column in table.columns):
        yield "<tr>"
        for column in table.columns:
            yield f'<th scope="col"{_classes(left=column.left)}>{escaped(column.name)}</th>'
        yield "</tr>"
        return
    yield "<tr>"
    for group, members in groupby(table.columns, key=lambda column: column.group):
        if group:
            yield f'<th scope="colgroup" colspan="{len(list(members))}">{escaped(group)}</th>'
        else:
            for column in members:
                yield f'<th scope="col" rowspan="2">{escaped(column.name)}</th>'
    yield "</tr><tr>"
    for i, column in enumerate(table.columns):
        if column.group:
            classes = _classes(edge=_begins_group(table, i), left=column.left)
            yield f'<th scope="col"{classes}>{escaped(column.name)}</th>'
    yield "</tr>"


def _begins_group(table: ReportTable, i: int) -> bool:
    group = table.columns[i].group
    return bool(group) and group != table.columns[i - 1].group


def _cell(column: Column, cell: TableCell, edge: bool) -> str:
    toned = {cell.tone: True} if cell.tone else {}
    inside = f"<span>{_inside(cell)}</span>" if column.left else _inside(cell)
    return f"<td{_classes(**toned, edge=edge, left=column.left)}>{inside}</td>"


def _classes(**names: bool) -> str:
    wanted = " ".join(name for name, is_wanted in names.items() if is_wanted)
    return f' class="{wanted}"' if wanted else ""


def _inside(cell: TableCell) -> str:
    mark = {"gain": "▲ ", "loss": "▼ "}.get(cell.tone, "")
    small = f" <small>{escaped(cell.small)}</small>" if cell.small else ""
    return f"{mark}{escaped(cell.text)}{small}"


def inlined(svg: str, name: str, alt: str) -> str:
    """The SVG as an element of the page, scaled to the width of its container."""
    start = svg.index("<svg")
    body = re.sub(r"<metadata>.*?</metadata>", "", svg[start:], flags=re.DOTALL)
    body = _TAG.sub(lambda match: _in_page(match[0], name), body)
    opening, _, rest = body.partition(">")
    opening = re.sub(r'\s(width|height|xmlns|version)="[^"]*"', "", opening)
    label = f' role="img" aria-labelledby="{escape(name)}-alt"'
    title = f'<title id="{escape(name)}-alt">{escape(alt)}</title>'
    return f"{opening}{label}>{title}{rest}".rstrip()


def width(svg: str) -> float:
    """The width of an SVG in points."""
    match = re.search(r'<svg[^>]*\bwidth="([\d.]+)pt"', svg)
    return float(match[1]) if match else 0.0


def _in_page(tag: str, name: str) -> str:
    """One tag with the page's colours and with ids that start with the plot's name."""
    coloured = _COLOUR.sub(lambda match: f"var(--{NAMES[match[0]]})", tag)
    return _ID.sub(lambda match: f"{match[1]}{escape(name)}-", coloured)
