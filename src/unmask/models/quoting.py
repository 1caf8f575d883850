"""Control tokens in the messages of a chat stay text; only the chat template's become tokens."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from unmask.errors import RequestError
from unmask.models.untrusted import check_whole

if TYPE_CHECKING:
    from unmask.models.tokenizer import Message, Tokenizer


@dataclass(frozen=True)
class Quotes:
    """Marks that stand for control tokens of messages while the chat template runs.

    Nobody can write a mark: it holds a number that is drawn for each chat.
    """

    texts: list[str] = field(default_factory=list)
    _nonce: str = field(default_factory=lambda: secrets.token_hex(8))

    def hide(self, tokenizer: Tokenizer, messages: Sequence[Message]) -> list[Message]:
        """The messages with a mark in the place of every control token."""
        return [
            {name: self._hidden(tokenizer, value) for name, value in message.items()}
            for message in messages
        ]

    def _hidden(self, tokenizer: Tokenizer, value: Any) -> Any:
        """A value with marks in all of its texts; the calls of tools are lists of objects."""
        if isinstance(value, list):
            return [self._hidden(tokenizer, each) for each in value]
        if isinstance(value, dict):
            hidden = partial(self._hidden, tokenizer)
            return {hidden(name): hidden(each) for name, each in value.items()}
        return self._hidden_text(tokenizer, value) if isinstance(value, str) else value

    def _hidden_text(self, tokenizer: Tokenizer, text: str) -> str:
        check_whole(text)
        parts, end = [], 0
        for _, first, last in tokenizer.control_tokens(text):
            parts += [text[end:first], f"\ue000{self._nonce}.{len(self.texts)}\ue001"]
            self.texts.append(text[first:last])
            end = last
        return "".join([*parts, text[end:]])

    def restore(self, text: str) -> str:
        """A text with its control tokens in the place of their marks."""
        if not self.texts:
            return text
        mark = rf"\ue000{self._nonce}\.(\d+)\ue001"
        return re.sub(mark, lambda match: self.texts[int(match[1])], text)

    def encode(self, tokenizer: Tokenizer, text: str) -> list[int]:
        """Token ids of a rendered chat with marks: what they stand for is encoded as text."""
        if not self.texts:
            return tokenizer.encode(text)
        ids, end = [], 0
        for token, first, last in tokenizer.control_tokens(text):
            ids += [*self._plain(tokenizer, text[end:first]), token]
            end = last
        return ids + self._plain(tokenizer, text[end:])

    def _plain(self, tokenizer: Tokenizer, text: str) -> list[int]:
        plain = self.restore(text)
        ids = tokenizer.encode_plain(plain)
        for token in tokenizer.control_ids.intersection(ids):
            if token != tokenizer.token_id("unk_token"):
                name = tokenizer.word(token)
                raise RequestError(
                    f"a message holds {name!r}, which this vocabulary cannot write as text; leave "
                    "it out, or allow control tokens (--control-tokens, control_tokens=True)"
                )
        return ids
