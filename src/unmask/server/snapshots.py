"""The whole canvas after a step, for those who want to watch: `"diffusing": true`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from unmask.server.reader import HALF, Frame, Reader

MASK = "·"  # one masked position in a snapshot, as `unmask run --watch` draws it
LONGEST = 4  # bytes of a character, so tokens that may share one


class Snapshots:
    """Draws the frames of one row, each against the one that was drawn before."""

    def __init__(self, reader: Reader, canvas: list[int]) -> None:
        self.reader = reader
        self._given = [token != reader.spec.mask_id for token in canvas]
        self._before = canvas

    def progress(self, frame: Frame) -> float:
        """The share of the positions to fill that are filled."""
        mask, total = self.reader.spec.mask_id, self._given.count(False)
        return round(1 - frame.ids.count(mask) / total, 4)

    def text(self, frame: Frame) -> str:
        """The canvas as text, a sign for each mask; a continuation up to its first end token."""
        ids = frame.ids[self.reader.first : self.reader.last]
        stops = () if self.reader.infill else self.reader.spec.stop_ids
        end = next((place for place, token in enumerate(ids) if token in stops), len(ids))
        mask, parts = self.reader.spec.mask_id, []
        for masked, group in groupby(ids[:end], key=lambda token: token == mask):
            run = list(group)
            parts.append(MASK * len(run) if masked else self._decoded(run))
        return "".join(parts)

    def cells(self, frame: Frame) -> list[dict[str, Any]]:
        """Every position with its text and state; what is new is so since the last call."""
        first, last = self.reader.first, self.reader.last
        states = [self._state(frame, place) for place in range(first, last)]
        self._before = frame.ids
        texts = self._texts(frame.ids[first:last])
        return [{"text": t, "state": s} for t, s in zip(texts, states, strict=True)]

    def _state(self, frame: Frame, place: int) -> str:
        token, spec = frame.ids[place], self.reader.spec
        if self._given[place]:
            return "given"
        if token == spec.mask_id:
            return "masked"
        if token in spec.stop_ids:
            return "end"
        return "committed" if self._before[place] == token else "new"

    def _texts(self, ids: list[int]) -> Iterator[str]:
        """The text of each token; a character of several tokens stands at the first of them."""
        place = 0
        while place < len(ids):
            text, size = self._whole(ids, place)
            yield from [text, *[""] * (size - 1)]
            place += size

    def _whole(self, ids: list[int], place: int) -> tuple[str, int]:
        """The text from this token on, and how many tokens it takes to end with a character."""
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
