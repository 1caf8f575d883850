"""Draws the canvas of one request after each step."""

from __future__ import annotations

import shutil
import time
import unicodedata
from collections.abc import Iterator
from itertools import groupby
from typing import TextIO

import torch
from torch import Tensor

from unmask.decoding.request import Request
from unmask.decoding.results import Step
from unmask.text.session import Session
from unmask.text.terminal import Painter

Run = tuple[str, tuple[str, ...]]  # a text and its styles
NEW, HOLE, OLD = ("bold", "green"), ("dim",), ()


class Watch:
    """Draws every step: in place in a terminal, as a new line elsewhere.

    A terminal gets at most `speed` frames a second, so that each can be read; 0 never waits.
    """

    def __init__(
        self, session: Session, request: Request, out: TextIO, colour: bool, speed: float = 0.0
    ) -> None:
        self.tokenizer = session.tokenizer
        self.spec = spec = session.spec
        self.out = out
        self.live = out.isatty()
        self.paint = Painter(colour)
        self._first = 0 if request.length is None else _first_mask(request.canvas, spec.mask_id)
        self._last = request.canvas[self._first :]
        self._drawn = 0  # rows on the screen
        self._pause = 1 / speed if speed else 0.0
        self._next = 0.0  # when the next frame may be drawn

    def __call__(self, step: Step) -> None:
        """Draw the canvas after a step; the batch has one row."""
        tokens = step.tokens[0, self._first : int(step.lengths[0])].cpu()
        self._follow(step)
        runs = list(self._runs(tokens))
        committed = int(((self._last == self.spec.mask_id) & (tokens != self.spec.mask_id)).sum())
        self._last = tokens
        head = f"{int(step.forward[0]) + 1:3} {f'+{committed}':>4}  "
        if self.live:
            self._wait()
            self._redraw(head, runs)
        else:
            text = "".join(self.paint(text, *styles) for text, styles in runs)
            self._put(head + text.replace("\n", "⏎") + "\n")

    def _follow(self, step: Step) -> None:
        """Move the last canvas to where its tokens stand after this step, if the canvas grew."""
        if step.source is None:
            return
        source = step.source[0, self._first : int(step.lengths[0])] - self._first
        moved = self._last[source.clamp(0, len(self._last) - 1)]
        self._last = torch.where(source >= 0, moved, self.spec.mask_id)

    def _wait(self) -> None:
        time.sleep(max(0.0, self._next - time.monotonic()))
        self._next = time.monotonic() + self._pause

    def _runs(self, tokens: Tensor) -> Iterator[Run]:
        """Neighbours of one kind, decoded together: a character may span several tokens."""
        kinds = [
            "mask" if new == self.spec.mask_id else "end" if new in self.spec.stop_ids else was
            for new, was in zip(
                tokens.tolist(),
                ("new" if differs else "old" for differs in (tokens != self._last).tolist()),
                strict=True,
            )
        ]
        for kind, group in groupby(zip(kinds, tokens.tolist(), strict=True), key=lambda x: x[0]):
            ids = [token for _, token in group]
            if kind in ("mask", "end"):
                yield ("·" if kind == "mask" else "∎") * len(ids), HOLE
            else:
                text = self.tokenizer.decode(ids, skip_special=True)
                yield _printable(text), NEW if kind == "new" else OLD

    def _redraw(self, head: str, runs: list[Run]) -> None:
        width, height = shutil.get_terminal_size((80, 24))
        rows = wrapped(runs, max(width - len(head), 8))
        shown = around_news(rows, max(height - 2, 1))
        margin = " " * len(head)
        lines = [
            (margin if place else head) + "".join(self.paint(text, *styles) for text, styles in row)
            for place, row in enumerate(shown)
        ]
        self._put(self._wiped() + "\n".join(lines) + "\n")
        self._drawn = len(lines)

    def _put(self, text: str) -> None:
        self.out.write(text)
        self.out.flush()

    def _wiped(self) -> str:
        return f"\x1b[{self._drawn}F\x1b[J" if self._drawn else ""


def wrapped(runs: list[Run], width: int) -> list[list[Run]]:
    """Runs cut into rows of at most `width` columns; wide characters take two."""
    rows: list[list[Run]] = [[]]
    column = 0
    for text, styles in runs:
        for character in text:
            wide = _columns(character)
            if character == "\n" or column + wide > width:
                rows.append([])
                column = 0
            if character != "\n":
                rows[-1].append((character, styles))
                column += wide
    return [_merged(row) for row in rows]


def around_news(rows: list[list[Run]], height: int) -> list[list[Run]]:
    """At most `height` rows, including the last row that changed."""
    changed = [place for place, row in enumerate(rows) if any(styles == NEW for _, styles in row)]
    end = max(height, (changed[-1] if changed else 0) + 1)
    return rows[max(0, end - height) : end]


def _merged(row: list[Run]) -> list[Run]:
    groups = groupby(row, key=lambda run: run[1])
    return [("".join(text for text, _ in group), styles) for styles, group in groups]


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _printable(text: str) -> str:
    """The text with spaces for control characters, except line breaks."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def _first_mask(canvas: Tensor, mask_id: int) -> int:
    return int((canvas == mask_id).nonzero()[0])
