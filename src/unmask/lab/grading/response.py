"""A model's response, and the end of its answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

ENDS = ("<|endoftext|>", "<|eot_id|>", "<|im_end|>", "<|role_end|>")  # of the families we load
_SPECIAL = re.compile(r"<\|[^<>|\s]+\|>")


@dataclass(frozen=True)
class Response:
    """A generated text with its special tokens, and what stood before it in the same turn.

    A prefill is part of the answer: where a preset opens a code fence, the model only closes it.
    """

    text: str
    prefill: str = ""
    stop: tuple[str, ...] = ()  # the answer ends before the first of these

    @property
    def whole(self) -> str:
        """The whole text, including what follows the end."""
        return self.prefill + self.text

    @property
    def cut(self) -> str:
        """Up to the first end token or stop string."""
        return self.prefill + until(self.text, (*ENDS, *self.stop))

    @property
    def plain(self) -> str:
        """The whole text without special tokens."""
        return _SPECIAL.sub("", self.whole)


def until(text: str, marks: Sequence[str]) -> str:
    """The text before the first of these marks, or all of it."""
    places = [place for mark in marks if (place := text.find(mark)) >= 0]
    return text[: min(places)] if places else text
