"""Draws the whole canvas after each step, for requests with `"diffusing": true`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from unmask.text.settled import HALF, RowCanvas, TextReader

MASK = "·"  # one masked position in a snapshot, as `unmask run --watch` draws it
LONGEST = 4  # bytes of a character, so at most four tokens share one


class Snapshots:
    """Draws the canvases of one row; each is compared with the one drawn before."""

    def __init__(self, reader: TextReader, canvas: list[int]) -> None:
        self.reader = reader
        self._given = [token != reader.spec.mask_id for token in canvas]
        self._before = canvas

    def progress(self, canvas: RowCanvas) -> float:
        """The share of the masks that are filled, 0..1."""
        mask, total = self.reader.spec.mask_id, self._given.count(False)
        total += len(canvas.ids) - len(self._given)  # of a canvas that grew
        return round(1 - canvas.ids.count(mask) / total, 4)

    def text(self, canvas: RowCanvas) -> str:
        """The canvas as text, `·` for each mask; a continuation ends before its first end token."""
        ids = canvas.ids[self.reader.span.first : self.reader.span.last]
        ends = self.reader.span.stop_ids
        end = next((place for place, token in enumerate(ids) if token in ends), len(ids))
        mask, parts = self.reader.spec.mask_id, []
        for masked, group in groupby(ids[:end], key=lambda token: token == mask):
            run = list(group)
            parts.append(MASK * len(run) if masked else self._decoded(run))
        return "".join(parts)

    def cells(self, canvas: RowCanvas) -> list[dict[str, Any]]:
        """Every position with its text and state; `new` means committed since the last call."""
        first, last = self.reader.span.first, min(self.reader.span.last, len(canvas.ids))
        states = [self._state(canvas, place) for place in range(first, last)]
        self._before = canvas.ids
        texts = self._texts(canvas.ids[first:last])
        return [{"text": t, "state": s} for t, s in zip(texts, states, strict=True)]

    def _state(self, canvas: RowCanvas, place: int) -> str:
        token, spec = canvas.ids[place], self.reader.spec
        if place < len(self._given) and self._given[place]:
            return "given"
        if token == spec.mask_id:
            return "masked"
        if token in spec.stop_ids:
            return "end"
        return "committed" if self._before[place : place + 1] == [token] else "new"

    def _texts(self, ids: list[int]) -> Iterator[str]:
        """The text of each token; the first token of a character has all of it."""
        place = 0
        while place < len(ids):
            text, size = self._whole(ids, place)
            yield from [text, *[""] * (size - 1)]
            place += size

    def _whole(self, ids: list[int], place: int) -> tuple[str, int]:
        """The text from this token to the end of its last character, and its number of tokens."""
        hidden = {self.reader.spec.mask_id, *self.reader.spec.stop_ids}
        alone = "" if ids[place] in hidden else self._decoded(ids[place : place + 1])
        if not alone.endswith(HALF):
            return alone, 1
        for size in range(2, LONGEST + 1):
            group = ids[place : place + size]
            if len(group) < size or hidden & set(group):
                break
            text = self._decoded(group)
            if not text.endswith(HALF):
                return text, size
        return alone, 1

    def _decoded(self, ids: list[int]) -> str:
        return self.reader.tokenizer.decode(ids, skip_special=True)
