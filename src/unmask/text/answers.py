"""Text in, text out: prompts as requests, and results as answers with their cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from unmask.decoding.loop import decode_steps
from unmask.decoding.options import MOST
from unmask.decoding.request import Request, Settings, infill_request, prompt_request
from unmask.decoding.results import Result, Step
from unmask.errors import RequestError
from unmask.models.denoiser import Denoiser, ModelSpec
from unmask.models.tokenizer import Message, Tokenizer
from unmask.text.clock import Clock, Seconds

_PLACEHOLDER = re.compile(r"\[MASK(?:\*(\d+))?\]")


@dataclass(frozen=True)
class Prompt:
    """A text or a chat; it is continued, or with `infill` its masks are filled."""

    text: str = ""
    messages: tuple[Message, ...] = ()  # where there are any, the text is what they render to
    infill: bool = False
    seed: int = 0

    def request(
        self, tokenizer: Tokenizer, spec: ModelSpec, settings: Settings, length: int
    ) -> Request:
        """The canvas to decode, checked; `length` is what a continuation adds."""
        text = self.rendered(tokenizer)
        if self.infill:
            canvas = encode_masks(tokenizer, text, spec.mask_id)
            return infill_request(spec, canvas, settings, self.seed)
        ids = _encode(tokenizer, text)
        return prompt_request(spec, ids, length, settings, self.seed)

    def rendered(self, tokenizer: Tokenizer) -> str:
        """The text that the model sees, masks as they were written."""
        return tokenizer.render(self.messages) if self.messages else self.text

    def unknown(self, tokenizer: Tokenizer) -> list[str]:
        """Words that the model's vocabulary does not have."""
        text = self.rendered(tokenizer)
        parts = _PLACEHOLDER.split(text)[::2] if self.infill else [text]  # as they are encoded
        return list(dict.fromkeys(word for part in parts for word in tokenizer.unknown(part)))


@dataclass(frozen=True)
class Format:
    """How texts become prompts: in the model's chat template or as they are.

    Args:
        chat: True or False as asked for; None takes the template where there is one, but for
            texts with masks.
        has_template: whether the tokenizer knows chats.
        infill: fill the masks of the text instead of continuing it.
        system: what a chat that brings no system message begins with.
    """

    chat: bool | None = None
    has_template: bool = False
    infill: bool = False
    system: str | None = None

    def in_chat(self, infill: bool) -> bool:
        """Whether a plain text is put into a chat."""
        return self.has_template and not infill if self.chat is None else self.chat

    def of_text(self, text: str, seed: int = 0, infill: bool | None = None) -> Prompt:
        """A prompt as the user's turn of a chat, or as it is."""
        filled = self.infill if infill is None else infill
        if self.in_chat(filled):
            message = {"role": "user", "content": text}
            return Prompt(messages=self._begun([message]), infill=filled, seed=seed)
        return Prompt(text, infill=filled, seed=seed)

    def of_messages(self, messages: Sequence[Message], seed: int = 0) -> Prompt:
        """A whole chat."""
        return Prompt(messages=self._begun(messages), infill=self.infill, seed=seed)

    def _begun(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        if self.system is None or messages[0].get("role") == "system":
            return tuple(messages)
        return ({"role": "system", "content": self.system}, *messages)


def holds_masks(text: str) -> bool:
    """Whether `[MASK]` or `[MASK*8]` stands in a text."""
    return _PLACEHOLDER.search(text) is not None


def count_masks(text: str) -> int:
    """How many masks `[MASK]` and `[MASK*8]` stand for in a text, before any is made."""
    return sum(_masks_of(hole) for hole in _PLACEHOLDER.finditer(text))


def _masks_of(hole: re.Match[str]) -> int:
    digits = hole[1] or "1"
    if len(digits) > len(str(MOST)) or not 1 <= int(digits) <= MOST:
        raise RequestError(f"{_shortened(hole[0])}: write [MASK*N] with N from 1 to {MOST}")
    return int(digits)


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:30]}...{text[-7:]}"


def encode_masks(tokenizer: Tokenizer, text: str, mask_id: int) -> list[int]:
    """Token ids of a text in which `[MASK]` is one mask and `[MASK*8]` are eight.

    The mask token's own text, such as `<|mdm_mask|>`, is a mask as well.
    """
    ids, end = [], 0
    for hole in _PLACEHOLDER.finditer(text):
        ids += _encode(tokenizer, text[end : hole.start()]) + [mask_id] * _masks_of(hole)
        end = hole.end()
    ids += _encode(tokenizer, text[end:])
    if mask_id not in ids:
        raise RequestError("the text holds no [MASK] to fill; write [MASK], or [MASK*8] for eight")
    return ids


def _encode(tokenizer: Tokenizer, text: str) -> list[int]:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RequestError(
            f"the text holds half a character, {text[error.start]!a}, at place {error.start}; "
            "give it in UTF-8"
        ) from None
    return tokenizer.encode(text)


@dataclass(frozen=True)
class Answer:
    """A finished text and what it cost."""

    text: str  # a continuation up to its first end token, or a canvas with its masks filled
    ids: list[int]  # the tokens of that text
    tokens: int  # written before the first end token
    written: int  # written at all
    nfe: int  # forwards over the full window
    nfe_eos: int  # forwards until everything up to the first end token was fixed
    eos_found: bool
    cut_off: bool  # a continuation that did not end within its length
    seconds: Seconds  # of a batch, this row's share of every forward it took part in
    kl_error: float = 0.0  # of a sparse history: how much higher a KL may be than was computed

    @classmethod
    def of(cls, result: Result, tokenizer: Tokenizer, infill: bool, seconds: Seconds) -> Answer:
        """A result as text."""
        ids = result.canvas.tolist() if infill else result.ids
        found = len(result.ids) < len(result.answer)
        return cls(
            tokenizer.decode(ids, skip_special=True),
            ids,
            len(result.ids),
            len(result.answer),
            result.nfe,
            result.nfe_eos,
            found,
            not found and not infill,
            seconds,
            result.kl_error,
        )

    @property
    def tokens_per_forward(self) -> dict[str, float]:
        """All that was written per forward, and what stands before the end token."""
        return {
            "nominal": round(self.written / self.nfe, 3),
            "effective": round(self.tokens / self.nfe_eos, 3),
        }

    def record(self) -> dict[str, Any]:
        """For JSON."""
        seconds = {
            "model": round(self.seconds.model, 6),
            "decision": round(self.seconds.decision, 6),
            "kl": round(self.seconds.kl, 6),
            "total": round(self.seconds.total, 6),
        }
        found = {**vars(self), "tokens_per_forward": self.tokens_per_forward, "seconds": seconds}
        if not self.kl_error:
            del found["kl_error"]
        return found


def generate(
    model: Denoiser,
    tokenizer: Tokenizer,
    requests: Iterable[Request],
    batch_size: int = 1,
    on_step: Callable[[Step], None] | None = None,
    keep_logits: bool = False,
    clock: Clock | None = None,
) -> Iterator[tuple[int, Answer]]:
    """Decode all requests, yielding each answer with its request's number as soon as it is there.

    A request is taken only when there is a place for it. `on_step` sees every step, with its logits
    where `keep_logits` says so. With a `clock` the answers carry their seconds, without the time of
    `on_step`.
    """
    spent: dict[int, Seconds] = {}
    infilled: dict[int, bool] = {}

    def numbered() -> Iterator[Request]:
        for number, request in enumerate(requests):
            spent[number], infilled[number] = Seconds(), request.length is None
            yield request

    steps: Iterator[tuple[Step, Seconds]]
    if clock is not None:
        steps = clock.steps(model, numbered(), batch_size, keep_logits)
    else:
        untimed = decode_steps(model, numbered(), batch_size, keep_logits)
        steps = ((step, Seconds()) for step in untimed)
    for step, seconds in steps:
        for key in step.keys:
            spent[key] += seconds
        if on_step is not None:
            on_step(step)
        for result in step.finished:
            key = result.key
            yield key, Answer.of(result, tokenizer, infilled.pop(key), spent.pop(key))
