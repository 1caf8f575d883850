"""Puts an SVG plot into an HTML page: unique ids, the page's colours, a text alternative."""

from __future__ import annotations

import re
from html import escape

from unmask.lab.figures.plots import GREYS
from unmask.trace.drawing import COLOURS

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
