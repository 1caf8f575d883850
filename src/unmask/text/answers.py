"""Answers: finished texts with what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

from unmask.decoding.request import Request
from unmask.decoding.results import Result, Step
from unmask.models.denoiser import Denoiser
from unmask.models.tokenizer import Tokenizer
from unmask.text.clock import Clock, Seconds, clocked_steps

PAGE_HEIGHT = 640  # pixels of the page inside a notebook


@dataclass(frozen=True)
class Answer:
    """A finished text and what it cost. In a notebook it shows the page that plays its trace."""

    text: str  # a continuation up to its first end token, or a canvas with its masks filled
    ids: list[int]  # the tokens of that text
    tokens: int  # number of tokens written before the first end token
    written: int  # number of tokens written
    nfe: int  # forward passes over the full window
    nfe_eos: int  # forward passes until everything up to the first end token was fixed
    eos_found: bool
    cut_off: bool  # a continuation that did not end within its length
    seconds: Seconds  # in a batch, this row's share of each forward pass
    kl_error: float = 0.0  # with a sparse history: how much higher a KL may be than computed
    commit_steps: list[int] = field(default_factory=list, repr=False)
    """Forward pass (from 0) that fixed each canvas position; -1 where the prompt gave it."""
    trace: bytes | None = field(default=None, repr=False)  # every step, as `unmask run --trace`

    @classmethod
    def of(cls, result: Result, tokenizer: Tokenizer, infill: bool, seconds: Seconds) -> Answer:
        """The text of a result."""
        ids = result.canvas.tolist() if infill else result.ids
        ended = len(result.ids) < len(result.answer)
        return cls(
            tokenizer.decode(ids, skip_special=True),
            ids,
            len(result.ids),
            len(result.answer),
            result.nfe,
            result.nfe_eos,
            ended,
            not (ended or infill or result.complete),
            seconds,
            result.kl_error,
            result.commit_step.tolist(),
        )

    @property
    def tokens_per_forward(self) -> dict[str, float]:
        """Tokens written per forward pass, and tokens before the end token per pass up to it."""
        return {
            "nominal": round(self.written / self.nfe, 3),
            "effective": round(self.tokens / self.nfe_eos, 3),
        }

    @property
    def step_map(self) -> list[int]:
        """The forward pass, from 0, that fixed each token of `ids`; -1 where the text gave it."""
        if len(self.ids) == len(self.commit_steps):
            return self.commit_steps
        return [step for step in self.commit_steps if step >= 0][: len(self.ids)]

    def record(self) -> dict[str, Any]:
        """For JSON."""
        record = {**vars(self), "tokens_per_forward": self.tokens_per_forward}
        record["seconds"] = self.seconds.record()
        record["step_map"] = self.step_map
        del record["commit_steps"], record["trace"]
        if not self.kl_error:
            del record["kl_error"]
        return record

    def _repr_html_(self) -> str:
        from unmask.page.build import TraceFile, page

        if self.trace is None:
            cost = f"{self.nfe} forward passes, {self.tokens} tokens"
            return f"<pre>{escape(self.text)}</pre><p>{cost}</p>"
        html = page([TraceFile("answer", self.trace)])
        return (
            f'<iframe srcdoc="{escape(html, quote=True)}" style="width:100%;height:{PAGE_HEIGHT}px;'
            'border:0" title="The run, step by step"></iframe>'
        )


def decode_requests(
    model: Denoiser,
    tokenizer: Tokenizer,
    requests: Iterable[Request],
    batch_size: int = 1,
    on_step: Callable[[Step], None] | None = None,
    steps: Clock = clocked_steps,
) -> Iterator[tuple[int, Answer]]:
    """Decode requests, yielding each answer with its request's number as soon as it is finished.

    A request is taken only when there is a place for it. `on_step` is called with every step.
    Answers carry their seconds as `steps` measures them, without those of `on_step`.
    """
    spent: dict[int, Seconds] = {}
    infilled: dict[int, bool] = {}

    def numbered() -> Iterator[Request]:
        for number, request in enumerate(requests):
            spent[number], infilled[number] = Seconds(), request.length is None
            yield request

    for step, seconds in steps(model, numbered(), batch_size):
        for key in step.keys:
            spent[key] += seconds
        if on_step is not None:
            on_step(step)
        for result in step.finished:
            key = result.key
            yield key, Answer.of(result, tokenizer, infilled.pop(key), spent.pop(key))
