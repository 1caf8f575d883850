"""What of a row's text is final while the row still decodes, and where a stop string cuts it."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unmask.decoding.request import Request
from unmask.decoding.results import Step
from unmask.models.denoiser import ModelSpec
from unmask.models.tokenizer import Tokenizer
from unmask.text.settled import Span

HALF = "\ufffd"  # what a decoder writes for bytes that are no character, or not yet


@dataclass(frozen=True)
class Frame:
    """The canvas of one row after a step."""

    ids: list[int]
    window: int  # first position of the window that was open: what lies before is final
    forward: int  # forwards of the row so far

    @classmethod
    def of(cls, step: Step, row: int) -> Frame:
        """One row of a step."""
        ids = step.tokens[row, : int(step.lengths[row])].tolist()
        return cls(ids, int(step.start[row]), int(step.forward[row]) + 1)


@dataclass(frozen=True)
class Reading:
    """A text, the tokens it was read from, and whether nothing can follow."""

    text: str
    tokens: int
    ended: bool
    stopped: bool = False  # by a stop string, which is cut off


class Reader:
    """Reads a row's canvas as text.

    The text of the final positions (see `Span`) grows only at its end, so what was read once is
    never taken back.
    """

    def __init__(
        self, tokenizer: Tokenizer, spec: ModelSpec, request: Request, stops: Sequence[str] = ()
    ) -> None:
        self.tokenizer, self.spec = tokenizer, spec
        self.span = Span.of(spec, request)
        self.first, self.last = self.span.first, self.span.last
        self.infill = request.length is None
        self.prompt_tokens = int((request.canvas != spec.mask_id).sum())
        self.stops = tuple(stops)
        self.grows = grows_at_its_end(tokenizer)

    def final(self, frame: Frame) -> Reading:
        """What no later step can change, or take back by going on."""
        ids, ended = self.span.final(frame.ids, frame.window)
        if not self.grows and not ended:
            return Reading("", 0, ended=False)
        return self.read(ids, ended)

    def read(self, ids: Sequence[int], ended: bool) -> Reading:
        """Tokens as text up to a stop string; unless `ended`, without what may yet change."""
        text = self.tokenizer.decode(ids, skip_special=True)
        text = text if ended else text.rstrip(HALF)
        cut = first_stop_in(text, self.stops)
        if cut is not None:
            tokens = self._tokens_until(cut, ids)
            return Reading(text[: cut[0]], tokens, ended=True, stopped=True)
        if not ended:
            text = text[: len(text) - _begun(text, self.stops)]
        return Reading(text, len(ids), ended)

    def _tokens_until(self, cut: tuple[int, int], ids: Sequence[int]) -> int:
        """How many tokens it takes to write up to the end of a stop string."""

        def whole(count: int) -> bool:
            text = self.tokenizer.decode(ids[:count], skip_special=True)
            return first_stop_in(text, self.stops) == cut

        return bisect_left(range(len(ids)), True, key=whole)


def first_stop_in(text: str, stops: Sequence[str]) -> tuple[int, int] | None:
    """Where the stop string that is complete first begins and ends, as a reader meets it."""
    found = [(at + len(stop), at) for stop in stops if (at := text.find(stop)) >= 0]
    if not found:
        return None
    end, begin = min(found)
    return begin, end


def _begun(text: str, stops: Sequence[str]) -> int:
    """How many characters at the end may be the beginning of a stop string."""
    lengths = (
        size
        for stop in stops
        for size in range(min(len(stop) - 1, len(text)), 0, -1)
        if text.endswith(stop[:size])
    )
    return max(lengths, default=0)


def grows_at_its_end(tokenizer: Tokenizer) -> bool:
    """Whether more tokens only add to a text, but for a half character at its end."""
    decoder = tokenizer.engine.decoder
    if decoder is None:
        return True
    return _grows(json.loads(decoder.__getstate__()))


def _grows(state: dict[str, Any]) -> bool:
    """Decoders that look at one token, or one byte, at a time; of others we do not know."""
    if state["type"] == "Sequence":
        return all(_grows(part) for part in state["decoders"])
    return state["type"] in ("ByteLevel", "Fuse", "Metaspace")
