"""What a browser would see of a page: tables, headings, links, attributes."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

from tests.lab.stores import findings_of
from unmask.lab.report import report_of
from unmask.lab.report.page import page

VOID = {"meta", "link", "br", "img", "path", "use", "rect", "input"}


@dataclass
class Seen:
    """A table's caption, and its rows of texts."""

    caption: str
    head: list[list[str]] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)


class Reader(HTMLParser):
    """Reads a page once; tags must be closed in their order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.tables, self.headings = [], [], [], []
        self.text, self.captions, self._buffer, self._in_head = "", {}, None, False
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append(Seen(self.captions[attributes["aria-labelledby"]]))
        elif tag == "thead":
            self._in_head = True
        elif tag == "tr":
            (self.tables[-1].head if self._in_head else self.tables[-1].rows).append([])
        elif tag in ("td", "th", "h1", "h2", "h3", "h4", "figcaption"):
            self._buffer, self._name = "", attributes.get("id")

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        assert self.open.pop() == tag
        if tag == "thead":
            self._in_head = False
        elif tag in ("td", "th"):
            table = self.tables[-1]
            (table.head if self._in_head else table.rows)[-1].append(" ".join(self._buffer.split()))
        elif tag in ("h1", "h2", "h3", "h4"):
            self.headings.append((int(tag[1]), self._buffer))
        elif tag == "figcaption" and self._name:
            self.captions[self._name] = self._buffer

    def handle_data(self, data):
        self.text += data
        if self._buffer is not None:
            self._buffer += data

    def table(self, caption):
        """The first table of that caption."""
        return next(table for table in self.tables if table.caption == caption)


def read_page(summaries, baseline=None):
    """The page of a report on these summaries, without plots."""
    return Reader(page(report_of(findings_of(summaries, baseline), []), {}))
