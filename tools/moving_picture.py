"""Draws docs/img/two-canvases.svg: two rules fill the same canvas, one forward pass after another.

python tools/moving_picture.py
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import wrap

import unmask

PICTURE = Path(__file__).parents[1] / "docs" / "img" / "two-canvases.svg"
PROMPT = "Sam has 11 stamps. He doubles that. Then he gets 5. Next he finds 2. How many now?"
RIGHT = "#### 29"
RULES = ("confidence | eb(0.1)", "confidence | swd(1) | eb(0.1)")
LENGTH = 24

COLUMNS, WIDE, HIGH, GAP = 4, 47, 28, 4  # of the cells; narrow, so that a phone can show them
PANEL = COLUMNS * (WIDE + GAP) - GAP
NEW, OLD = "#bfe3cd", "#ffffff"  # a token that was just committed is green
SECONDS, REST = 0.5, 4.0  # of a forward pass, and of the last picture
SIZE = (2 * PANEL + 40, 336)


@dataclass(frozen=True)
class Panel:
    """A run of one rule: the words of its answer, and the forward pass that wrote each."""

    rule: str
    words: list[str]
    steps: list[int]
    forwards: int
    right: bool

    @classmethod
    def of(cls, session: unmask.Session, rule: str) -> Panel:
        """Decode the prompt by a rule."""
        answer = session.generate(PROMPT, rule=rule, length=LENGTH, block="full", eos="keep")
        assert session.tokenizer is not None
        words = [session.tokenizer.decode([token]).strip() for token in answer.ids]
        words += ["EOS"] * (LENGTH - len(words))
        steps, right = answer.commit_steps[-LENGTH:], answer.text.endswith(RIGHT)
        return cls(rule, words, steps, answer.nfe, right)


def picture(panels: list[Panel]) -> Iterator[str]:
    """The lines of the SVG."""
    last = max(panel.forwards for panel in panels)
    whole = last * SECONDS + REST
    width, height = SIZE
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" font-family="ui-monospace, Menlo, Consolas, monospace" '
        'font-size="13">'
    )
    yield f"<title>{escape(PROMPT)} Two rules fill the canvas.</title>"
    yield f'<rect width="{width}" height="{height}" rx="10" fill="#f7f8fa"/>'
    for line, words in enumerate(wrap(PROMPT, 50)):
        yield f'<text x="12" y="{26 + 18 * line}" fill="#1f2430">{escape(words)}</text>'
    for number, panel in enumerate(panels):
        yield f'<g transform="translate({12 + number * (PANEL + 16)} 66)">'
        yield from _panel(panel, whole)
        yield "</g>"
    yield "</svg>"


def _panel(panel: Panel, whole: float) -> Iterator[str]:
    for line, part in enumerate(wrap(panel.rule, 22)):
        yield f'<text y="{10 + 18 * line}" fill="#1f2430" font-weight="600">{escape(part)}</text>'
    for place, (word, step) in enumerate(zip(panel.words, panel.steps, strict=True)):
        x, y = place % COLUMNS * (WIDE + GAP), 42 + place // COLUMNS * (HIGH + GAP)
        yield f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" rx="5" fill="#d9dde5"/>'
        ink, after = "#8a93a2" if word == "EOS" else "#1f2430", (step + 1) * SECONDS
        yield f"<g>{_animated('opacity', (0, 1), after, whole)}"
        yield (
            f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" rx="5" fill="{OLD}" '
            f'stroke="#b9c0cc">{_animated("fill", (NEW, OLD), after + SECONDS, whole)}</rect>'
        )
        yield (
            f'<text x="{x + WIDE / 2}" y="{y + 19}" text-anchor="middle" '
            f'fill="{ink}">{escape(word)}</text></g>'
        )
    colour, verdict = ("#157347", "right") if panel.right else ("#b02a37", "wrong")
    y = 42 + -(-len(panel.words) // COLUMNS) * (HIGH + GAP) + 20
    appears = _animated("opacity", (0, 1), panel.forwards * SECONDS, whole)
    yield (
        f'<text y="{y}" fill="{colour}" font-weight="600">{appears}{verdict}, '
        f"{panel.forwards} forwards</text>"
    )


def _animated(attribute: str, values: tuple[object, object], at: float, whole: float) -> str:
    """An attribute that changes at a time, again and again.

    A viewer without animations shows the last value.
    """
    before, after = values
    return (
        f'<animate attributeName="{attribute}" values="{before};{after};{after}" '
        f'keyTimes="0;{at / whole:.4f};1" calcMode="discrete" dur="{whole:g}s" '
        'repeatCount="indefinite"/>'
    )


if __name__ == "__main__":
    session = unmask.Session()
    PICTURE.write_text("\n".join(picture([Panel.of(session, rule) for rule in RULES])) + "\n")
    print(PICTURE)  # noqa: T201
