"""The part of a row's answer that no later step can change, as tokens and as text."""

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

HALF = "\ufffd"  # a decoder writes it for bytes that are not yet a whole character


@dataclass(frozen=True)
class RowCanvas:
    """The canvas of one row after a step."""

    ids: list[int]
    window: int  # first position of the window that was open
    forward: int  # forwards of the row so far

    @classmethod
    def of(cls, step: Step, row: int) -> RowCanvas:
        """Row `row` of a step."""
        ids = step.tokens[row, : int(step.lengths[row])].tolist()
        return cls(ids, int(step.start[row]), int(step.forward[row]) + 1)


@dataclass(frozen=True)
class Span:
    """The positions of a row's answer; in an infilled canvas, all positions.

    A position is settled once it and all positions before it are committed. If the rule can revoke
    commitments, its window must be closed as well.
    """

    first: int
    last: int  # one past the last
    mask_id: int
    stop_ids: tuple[int, ...]  # tokens that end an answer; none in an infilled canvas
    revokes: bool

    @classmethod
    def of(cls, spec: ModelSpec, request: Request) -> Span:
        """The span of a request that has not started."""
        revokes = request.settings.rule.revoke is not None
        if request.length is None:
            return cls(0, len(request.canvas), spec.mask_id, (), revokes)
        first = int((request.canvas == spec.mask_id).nonzero()[0])
        return cls(first, first + request.length, spec.mask_id, spec.stop_ids, revokes)

    def settled(self, ids: Sequence[int], window: int) -> tuple[list[int], bool]:
        """The settled tokens before an end token, and whether the answer ends with them.

        Args:
            ids: the canvas after a step.
            window: the first position of the window that was open in that step.
        """
        whole = min(self.last, len(ids))  # a growing canvas may be shorter than its limit
        end = min(whole, window) if self.revokes else whole
        for place in range(self.first, end):
            token = ids[place]
            if token == self.mask_id or token in self.stop_ids:
                return list(ids[self.first : place]), token in self.stop_ids
        return list(ids[self.first : end]), end == whole


@dataclass(frozen=True)
class SettledText:
    """A text, and the number of tokens it was read from."""

    text: str
    tokens: int
    ended: bool  # no text can follow
    stopped: bool = False  # a stop string ended it; the stop string is cut off


class TextReader:
    """Reads the settled part of a row's canvas as text, up to a stop string.

    The text only grows at its end, so a stream can send it piece by piece.
    """

    def __init__(
        self, tokenizer: Tokenizer, spec: ModelSpec, request: Request, stops: Sequence[str] = ()
    ) -> None:
        self.tokenizer, self.spec = tokenizer, spec
        self.span = Span.of(spec, request)
        self.infill = request.length is None
        self.prompt_tokens = int((request.canvas != spec.mask_id).sum())
        self.stops = tuple(stops)
        self.grows = grows_at_its_end(tokenizer)

    def settled(self, canvas: RowCanvas) -> SettledText:
        """The text that no later step can change or shorten."""
        ids, ended = self.span.settled(canvas.ids, canvas.window)
        if not self.grows and not ended:
            return SettledText("", 0, ended=False)
        return self.read(ids, ended)

    def read(self, ids: Sequence[int], ended: bool) -> SettledText:
        """Tokens as text up to a stop string.

        Unless `ended`, the text leaves out half a character at its end, and characters at its end
        that may begin a stop string.
        """
        text = self.tokenizer.decode(ids, skip_special=True)
        text = text if ended else text.rstrip(HALF)
        cut = first_stop_in(text, self.stops)
        if cut is not None:
            tokens = self._tokens_until(cut, ids)
            return SettledText(text[: cut[0]], tokens, ended=True, stopped=True)
        if not ended:
            text = text[: len(text) - _begun_stop(text, self.stops)]
        return SettledText(text, len(ids), ended)

    def _tokens_until(self, cut: tuple[int, int], ids: Sequence[int]) -> int:
        """The number of tokens that write the text up to the end of a stop string."""

        def holds_stop(count: int) -> bool:
            text = self.tokenizer.decode(ids[:count], skip_special=True)
            return first_stop_in(text, self.stops) == cut

        return bisect_left(range(len(ids)), True, key=holds_stop)


def first_stop_in(text: str, stops: Sequence[str]) -> tuple[int, int] | None:
    """Begin and end of the stop string that ends first in the text."""
    matches = [(at + len(stop), at) for stop in stops if (at := text.find(stop)) >= 0]
    if not matches:
        return None
    end, begin = min(matches)
    return begin, end


def _begun_stop(text: str, stops: Sequence[str]) -> int:
    """The number of characters at the end that may be the beginning of a stop string."""
    lengths = (
        size
        for stop in stops
        for size in range(min(len(stop) - 1, len(text)), 0, -1)
        if text.endswith(stop[:size])
    )
    return max(lengths, default=0)


def grows_at_its_end(tokenizer: Tokenizer) -> bool:
    """Whether more tokens only add to a text, except for half a character at its end."""
    decoder = tokenizer.engine.decoder
    return decoder is None or _grows(json.loads(decoder.__getstate__()))


def _grows(state: dict[str, Any]) -> bool:
    """True for decoders that read one token or one byte at a time; False for all others."""
    if state["type"] == "Sequence":
        return all(_grows(part) for part in state["decoders"])
    return state["type"] in ("ByteLevel", "Fuse", "Metaspace")
