"""Prompts: texts, chats and texts with masks, and the canvases that they become."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unmask.decoding.options import MOST
from unmask.decoding.request import Request, infill_request, prompt_request
from unmask.decoding.resolve import Resolved
from unmask.errors import RequestError, shown
from unmask.models.denoiser import ModelSpec
from unmask.models.quoting import Quotes
from unmask.models.tokenizer import Message, Tokenizer
from unmask.models.untrusted import check_whole

MESSAGES = "a list of messages, each with a role and a content"
_PLACEHOLDER = re.compile(r"\[MASK(?:\*(\d+))?\]")


@dataclass(frozen=True)
class Prompt:
    """A text or a chat. It is continued, or with `infill` its masks are filled.

    Control tokens in the messages, such as `<|eot_id|>`, are text, unless `control` allows them. In
    a text without messages they are always themselves.
    """

    text: str = ""
    messages: tuple[Message, ...] = ()  # if there are any, the text is what they render to
    infill: bool = False
    seed: int = 0
    control: bool = False
    suffix: str = ""  # the text behind the answer to a text without masks

    def __post_init__(self) -> None:
        object.__setattr__(self, "messages", tuple(map(_plain_message, self.messages)))
        turns = [turn for turn in self.messages if turn.get("role") != "system"] or self.messages
        texts = [turn["content"] for turn in turns] or [self.text]
        if not any(map(str.strip, texts)):
            raise RequestError("the prompt is empty; give a text of at least one word")

    def render(
        self, tokenizer: Tokenizer, template_args: Mapping[str, Any] | None = None
    ) -> RenderedPrompt:
        """The text that the model sees; a chat goes through the chat template."""
        if not self.messages:
            idle = bool(template_args)
            return RenderedPrompt(
                self.text, self.infill, self.seed, suffix=self.suffix, idle_args=idle
            )
        quotes = Quotes()
        messages = self.messages if self.control else quotes.hide(tokenizer, self.messages)
        if not self.control:
            _refuse_control(tokenizer, template_args or {})
        text = tokenizer.render(messages, template_args)
        unread = tuple(tokenizer.unread_args(template_args or {}))
        return RenderedPrompt(text, self.infill, self.seed, quotes, unread)


@dataclass(frozen=True)
class RenderedPrompt:
    """The text that the model sees, with masks still written as `[MASK]`."""

    marked: str  # control tokens that are text are marks of `quotes`
    infill: bool
    seed: int
    quotes: Quotes = field(default_factory=Quotes)
    unread: tuple[str, ...] = ()  # arguments that the chat template does not use
    suffix: str = ""
    idle_args: bool = False  # whether there are such arguments and no chat template runs

    @property
    def text(self) -> str:
        return self.quotes.restore(self.marked)

    def request(self, tokenizer: Tokenizer, spec: ModelSpec, resolved: Resolved) -> Request:
        """The canvas to decode, checked."""
        if self.infill:
            canvas = encode_masks(tokenizer, self.marked, spec.mask_id, self.quotes)
            return infill_request(spec, canvas, resolved.settings, self.seed)
        ids = _encode(tokenizer, self.marked, self.quotes)
        after = _encode(tokenizer, self.suffix, Quotes())
        return prompt_request(spec, ids, resolved.length, resolved.settings, self.seed, after)

    def unknown_words(self, tokenizer: Tokenizer) -> list[str]:
        """Words that the model's vocabulary does not have."""
        parts = _PLACEHOLDER.split(self.marked)[::2] if self.infill else [self.marked, self.suffix]
        texts = [self.quotes.restore(part) for part in parts]
        return list(dict.fromkeys(word for text in texts for word in tokenizer.unknown(text)))

    @property
    def holds_masks(self) -> bool:
        """Whether `[MASK]` or `[MASK*8]` stands in the text."""
        return _PLACEHOLDER.search(self.text) is not None

    def count_masks(self) -> int:
        """How many masks `[MASK]` and `[MASK*8]` stand for, before any is made."""
        return sum(_masks_of(match) for match in _PLACEHOLDER.finditer(self.text))


@dataclass(frozen=True)
class PromptFormat:
    """How texts become prompts: in the model's chat template, or unchanged.

    Args:
        chat: True or False as asked for. None uses the template if there is one, except for texts
            with masks.
        has_template: whether the tokenizer has a chat template.
        infill: fill the masks of the text instead of continuing it.
        system: the first message of a chat that has no system message.
        control: let control tokens in messages be tokens.
    """

    chat: bool | None = None
    has_template: bool = False
    infill: bool = False
    system: str | None = None
    control: bool = False

    def __post_init__(self) -> None:
        if self.system is not None and not self.in_chat(self.infill):
            raise RequestError("--system needs a chat, and this prompt has none; leave it out")

    def in_chat(self, infill: bool) -> bool:
        """Whether a plain text is put into a chat."""
        return self.has_template and not infill if self.chat is None else self.chat

    def of_text(self, text: str, seed: int = 0, infill: bool | None = None) -> Prompt:
        """A prompt as the user's turn of a chat, or unchanged."""
        fill = self.infill if infill is None else infill
        if not isinstance(text, str):
            raise RequestError(f"a prompt must be a text, got {shown(text)}; chat takes messages")
        if self.in_chat(fill):
            message = {"role": "user", "content": text}
            chat = self._with_system([message])
            return Prompt(messages=chat, infill=fill, seed=seed, control=self.control)
        return Prompt(text, infill=fill, seed=seed)

    def of_messages(self, messages: Sequence[Message], seed: int = 0) -> Prompt:
        """A whole chat."""
        chat = self._with_system(messages)
        return Prompt(messages=chat, infill=self.infill, seed=seed, control=self.control)

    def _with_system(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        first = messages[0] if messages and isinstance(messages[0], Mapping) else {}
        if self.system is None or first.get("role") == "system":
            return tuple(messages)
        return ({"role": "system", "content": self.system}, *messages)


def several(given: Any, what: str) -> list[Any]:
    """Several texts or messages as a list; `what` says what is allowed."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise RequestError(f"give {what}, got {shown(given)}")
    return list(given)


def texts_of(given: Any) -> list[Any]:
    """One text or several, as a list."""
    return [given] if isinstance(given, str) else several(given, "a text or a list of texts")


def encode_masks(
    tokenizer: Tokenizer, text: str, mask_id: int, quotes: Quotes | None = None
) -> list[int]:
    """Token ids of a text in which `[MASK]` is one mask and `[MASK*8]` is eight.

    The mask token's own text, such as `<|mdm_mask|>`, is a mask as well, except in `quotes`.
    """
    quotes = quotes or Quotes()
    ids, end = [], 0
    for match in _PLACEHOLDER.finditer(text):
        before = _encode(tokenizer, text[end : match.start()], quotes)
        ids += before + [mask_id] * _masks_of(match)
        end = match.end()
    ids += _encode(tokenizer, text[end:], quotes)
    if mask_id not in ids:
        raise RequestError("the text holds no [MASK] to fill; write [MASK], or [MASK*8] for eight")
    return ids


def _plain_message(message: Message) -> Message:
    """A message whose content is a text; parts of text, which OpenAI's clients send, are joined."""
    fields = message if isinstance(message, Mapping) else {}
    content = fields.get("content")
    if content is None and fields.get("tool_calls"):
        content = ""
    elif isinstance(content, list | tuple):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        texts = [part for part in parts if isinstance(part, str)]
        content = "".join(texts) if len(texts) == len(content) else None
    if not isinstance(fields.get("role"), str) or not isinstance(content, str):
        raise RequestError(f"a message needs the texts 'role' and 'content', got {shown(message)}")
    return {**fields, "content": content}


def _masks_of(match: re.Match[str]) -> int:
    digits = match[1] or "1"
    if len(digits) > len(str(MOST)) or not 1 <= int(digits) <= MOST:
        raise RequestError(f"{_shortened(match[0])}: write [MASK*N] with N from 1 to {MOST}")
    return int(digits)


def _refuse_control(tokenizer: Tokenizer, value: Any) -> None:
    """Raise if a text in the arguments of a chat template holds a control token."""
    if isinstance(value, str):
        if held := tokenizer.control_tokens(value):
            _, begin, end = held[0]
            raise RequestError(
                f"template_args hold the control token {value[begin:end]!r}; leave it out, or "
                "allow control tokens"
            )
    elif isinstance(value, Mapping):  # the properties of a schema have any names
        _refuse_control(tokenizer, [*value, *value.values()])
    elif isinstance(value, list | tuple):
        for each in value:
            _refuse_control(tokenizer, each)


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:30]}...{text[-7:]}"


def _encode(tokenizer: Tokenizer, text: str, quotes: Quotes) -> list[int]:
    check_whole(text)
    return quotes.encode(tokenizer, text)
