"""Draws the pictures of docs/concepts.md from real runs of the embedded model.

python tools/drawings.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from math import exp
from pathlib import Path

import unmask
from unmask.decoding.options import Eos
from unmask.trace import Trace
from unmask.trace.recording.reading import Moment
from unmask.trace.story.overview import telling_position

FOLDER = Path(__file__).parents[1] / "docs" / "img"
PENS = "Ann has 12 pens. She buys 3, then loses 5. How many now?"
BOOKS = "Dan has 19 books. He loses 5. Next he finds 1. How many now?"
RULE = "confidence | swd(5) | eb(0.1)"
WIDE, HIGH, GAP, EDGE = 47, 26, 3, 12  # of the cells, and of the picture's edge
FOLD = 8  # cells on a line, so that a phone shows them large enough to read
WIDTH = 2 * EDGE + FOLD * (WIDE + GAP) - GAP
LINE = HIGH + GAP
LABEL = 22  # above the cells that it names
INK, SOFT, MASK, NEW, OLD = "#1f2430", "#5b6472", "#d9dde5", "#bfe3cd", "#ffffff"
ENDS = {"<|endoftext|>": "EOS", "<|eot_id|>": "EOT"}
STEP = 2  # the step, counted from 0, whose numbers are shown

Lines = Iterator[str]


def svg(height: float, title: str, lines: Lines) -> str:
    """A whole picture on a light ground, so that it can be read on a dark page too."""
    size = f'width="{WIDTH}" height="{height:g}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" {size} '
        f'role="img" font-family="ui-monospace, Menlo, Consolas, monospace" '
        f'font-size="13"><title>{escape(title)}</title><rect {size} rx="10" fill="#f7f8fa"/>'
    )
    return "\n".join([head, *lines, "</svg>"]) + "\n"


def text(x: float, y: float, words: str, colour: str = INK, anchor: str = "start") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'
    )


def place(column: int, line: float = LINE) -> tuple[float, float]:
    """The left edge of a cell, and how far its line lies below the first one."""
    return EDGE + column % FOLD * (WIDE + GAP), column // FOLD * line


def cell(column: int, y: float, word: str, fill: str, line: float = LINE) -> Lines:
    x, below = place(column, line)
    yield (
        f'<rect x="{x}" y="{y + below:g}" width="{WIDE}" height="{HIGH}" rx="4" fill="{fill}" '
        f'stroke="#b9c0cc"/>'
    )
    if word:
        yield text(x + WIDE / 2, y + below + 18, word, anchor="middle")


def bar(column: int, bottom: float, share: float, fill: str, line: float) -> str:
    """A bar of at most 44 pixels that stands on `bottom`."""
    x, below = place(column, line)
    high = max(44 * share, 1.0)
    return (
        f'<rect x="{x + 8}" y="{bottom + below - high:.1f}" width="{WIDE - 16}" '
        f'height="{high:.1f}" fill="{fill}"/>'
    )


def lines_of(length: int) -> int:
    """How many lines the cells of an answer take."""
    return -(-length // FOLD)


def word_of(trace: Trace, token: int) -> str:
    word = trace.word(token).strip()
    return ENDS.get(word, word)


def canvas(trace: Trace, length: int) -> str:
    """The canvas after each forward; what was just committed is green."""
    high = LABEL + lines_of(length) * LINE + 6

    def lines() -> Lines:
        for step in range(len(trace.moments) + 1):
            y = EDGE + step * high
            name = f"after forward {step}" if step else "at the start"
            yield text(EDGE, y + 14, name, SOFT)
            tokens, before = (trace.canvas_after(n)[-length:] for n in (step, max(step - 1, 0)))
            for column, (token, earlier) in enumerate(zip(tokens, before, strict=True)):
                masked = token == trace.spec.mask_id
                fill = MASK if masked else NEW if token != earlier else OLD
                word = "" if masked else word_of(trace, token)
                yield from cell(column, y + LABEL, word, fill)

    height = EDGE + (len(trace.moments) + 1) * high
    return svg(height, "The canvas after each forward", lines())


def _columns(trace: Trace, moment: Moment, length: int) -> list[int]:
    first = len(trace.canvas) - length
    return [int(position) - first for position in moment.positions]


def forward(trace: Trace, length: int) -> str:
    """What one forward predicts: the likeliest token of every mask, and its probability."""
    moment, line = trace.moments[STEP], HIGH + 86

    def lines() -> Lines:
        yield text(EDGE, EDGE + 14, "canvas; probability; prediction", SOFT)
        top = EDGE + LABEL
        for column, token in enumerate(trace.canvas_after(STEP)[-length:]):
            masked = token == trace.spec.mask_id
            word, fill = ("", MASK) if masked else (word_of(trace, token), OLD)
            yield from cell(column, top, word, fill, line)
        for row, column in enumerate(_columns(trace, moment, length)):
            share = float(moment.confidence[row])
            yield bar(column, top + HIGH + 50, share, "#7fa8d9", line)
            x, below = place(column, line)
            word = word_of(trace, int(moment.token[row]))
            yield text(x + WIDE / 2, top + below + HIGH + 66, word, anchor="middle")

    height = 2 * EDGE + LABEL + lines_of(length) * line - 14
    return svg(height, "One forward predicts every mask at once", lines())


def rule(trace: Trace, length: int) -> str:
    """The same step decided: score, score after SWD, and what is committed."""
    moment = trace.moments[STEP]
    columns = list(enumerate(_columns(trace, moment, length)))
    line = 50.0
    high = LABEL + lines_of(length) * line + 6

    def lines() -> Lines:
        scored = (("the score, confidence", moment.base), ("the score after swd(5)", moment.score))
        for panel, (name, scores) in enumerate(scored):
            y = EDGE + panel * high
            yield text(EDGE, y + 14, name, SOFT)
            for row, column in columns:
                share = _utility(float(scores[row]), moment.logarithmic)
                fill = "#3f9a68" if moment.chosen[row] else "#a9b3c1"
                yield bar(column, y + LABEL + 46, share, fill, line)
        y = EDGE + 2 * high
        yield text(EDGE, y + 14, "what eb(0.1) commits", SOFT)
        for column, token in enumerate(trace.canvas_after(STEP)[-length:]):
            if token != trace.spec.mask_id:
                yield from cell(column, y + LABEL, word_of(trace, token), OLD)
        for row, column in columns:
            chosen, word = bool(moment.chosen[row]), word_of(trace, int(moment.token[row]))
            fill = NEW if chosen else MASK
            yield from cell(column, y + LABEL, word if chosen else "", fill)

    height = 2 * EDGE + 2 * high + LABEL + lines_of(length) * LINE
    return svg(height, "A rule: score, modulator, selection", lines())


def _utility(score: float, logarithmic: bool) -> float:
    return exp(score) if logarithmic else score


def stability(trace: Trace) -> str:
    """One position in consecutive forwards: its likeliest tokens, and how far they moved."""
    position = telling_position(trace)
    looks = [(moment, moment.place(position)) for moment in trace.moments]
    shown = [
        (number, moment, row) for number, (moment, row) in enumerate(looks, 1) if row is not None
    ]
    wide, high = (WIDTH - EDGE) / 2, 158

    def lines() -> Lines:
        for panel, (number, moment, row) in enumerate(shown):
            x, y = EDGE + panel % 2 * wide, EDGE + panel // 2 * high
            yield text(x, y + 14, f"forward {number}", SOFT)
            for rank in range(4):
                top = y + 26 + rank * 24
                share = float(moment.probabilities[row][rank])
                yield text(x, top + 13, word_of(trace, int(moment.alternatives[row][rank])))
                fill = "#7fa8d9" if share > 0.005 else "#d9dde5"
                extent = f'width="{max(130 * share, 1):.1f}" height="16"'
                yield f'<rect x="{x + 52:g}" y="{top}" {extent} fill="{fill}"/>'
            moved = float(moment.instability[row])
            yield text(x, y + 138, f"D = {moved:.2g}", "#b02a37" if moved > 0.1 else "#157347")
        y = EDGE + panels * high + 14
        yield text(EDGE, y, "D compares a forward with the one before.", SOFT)
        yield text(EDGE, y + 18, "Red: the prediction still moves.", SOFT)

    panels = -(-len(shown) // 2)
    height = EDGE + panels * high + 44
    return svg(height, "The distribution of one position settles", lines())


def block(session: unmask.Session, length: int) -> str:
    """The forward that wrote each position, over the full window and in blocks."""
    shades = ("#ffffff", "#e3ecf8")
    high = LABEL + lines_of(length) * LINE + 6

    def lines() -> Lines:
        for panel, width in enumerate(("full", 4)):
            y = EDGE + panel * high
            answer = session.generate(PENS, rule="confidence | top(1)", length=length, block=width)
            name = "full window" if width == "full" else f"blocks of {width}"
            yield text(EDGE, y + 14, f"{name}: the forward that wrote it", SOFT)
            for column, step in enumerate(answer.commit_steps[-length:]):
                fill = shades[0 if width == "full" else column // 4 % 2]
                yield from cell(column, y + LABEL, str(step + 1), fill)

    return svg(EDGE + 2 * high, "Full window and blocks", lines())


def eos(session: unmask.Session, length: int) -> str:
    """One prompt under three EOS policies, after four forwards."""
    policies: tuple[Eos, ...] = ("keep", "suppress", "last")
    high = LABEL + lines_of(length) * LINE + 6

    def lines() -> Lines:
        for panel, policy in enumerate(policies):
            y = EDGE + panel * high
            answer = session.generate(
                BOOKS,
                rule="entropy | eb(0.1)",
                length=length,
                block="full",
                eos=policy,
                trace=True,
            )
            trace = Trace.of(answer.trace or b"")
            yield text(EDGE, y + 14, f"{policy}, after 4 of {answer.nfe} forwards", SOFT)
            for column, token in enumerate(trace.canvas_after(4)[-length:]):
                masked = token == trace.spec.mask_id
                word = "" if masked else word_of(trace, int(token))
                fill = MASK if masked else NEW if word == "EOS" else OLD
                yield from cell(column, y + LABEL, word, fill)

    height = EDGE + len(policies) * high
    return svg(height, "Three EOS policies after four forwards", lines())


def main() -> None:
    """Write all pictures."""
    session, length = unmask.Session(), 16
    answer = session.generate(PENS, rule=RULE, length=length, block="full", trace=True)
    trace = Trace.of(answer.trace or b"")
    made: dict[str, Callable[[], str]] = {
        "canvas": lambda: canvas(trace, length),
        "forward": lambda: forward(trace, length),
        "rule": lambda: rule(trace, length),
        "stability": lambda: stability(trace),
        "block": lambda: block(session, length),
        "eos": lambda: eos(session, 24),
    }
    for name, draw in made.items():
        (FOLDER / f"concept-{name}.svg").write_text(draw())


if __name__ == "__main__":
    main()
