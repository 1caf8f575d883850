"""Sends the steps of a row to a streamer of transformers: put, put_draft, end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from unmask.decoding.request import Request
from unmask.decoding.results import Step
from unmask.errors import RequestError
from unmask.models.denoiser import ModelSpec
from unmask.text.settled import Span


class Streamed:
    """Sends one row to a streamer; does nothing if the streamer is None.

    `put` gets the prompt and then every token once, as soon as it is settled; together they are
    the row that generate returns, without padding. `put_draft`, if the streamer has it, gets the
    current guess for the rest of the window after each step. All are [1, n] on the CPU.
    """

    def __init__(self, streamer: Any, span: Span) -> None:
        self.streamer = streamer
        self.span = span
        self.sent = 0  # tokens of the answer that were put

    @classmethod
    def of(
        cls, streamer: Any, inputs: Tensor, requests: Sequence[Request], spec: ModelSpec
    ) -> Streamed:
        """Check the streamer of a call and put the prompt."""
        if streamer is not None and len(requests) > 1:
            raise RequestError(f"a streamer shows one row, got {len(requests)} rows")
        if getattr(streamer, "_takes_logits", False):
            raise RequestError(
                "the streamer asks for the logits of every draft, but unmask computes those of "
                "masked positions only; use a streamer with _takes_logits = False"
            )
        if streamer is not None:
            streamer.put(inputs.cpu())
        return cls(streamer, Span.of(spec, requests[0]))

    def take(self, step: Step) -> None:
        """Put the tokens that a step settled, and the draft of the others."""
        if self.streamer is None:
            return
        canvas = step.tokens[0, : int(step.lengths[0])].tolist()
        final, ended = self.span.settled(canvas, int(step.start[0]))
        self._put(final)
        if not ended and hasattr(self.streamer, "put_draft"):
            draft = self._draft(step)
            if len(draft):
                self.streamer.put_draft(draft[None])

    def end(self, answer: Sequence[int]) -> None:
        """Put the rest of the answer and end the stream."""
        if self.streamer is not None:
            self._put(answer)
            self.streamer.end()

    def _put(self, final: Sequence[int]) -> None:
        if len(final) > self.sent:
            self.streamer.put(torch.tensor([final[self.sent :]]))
            self.sent = len(final)

    def _draft(self, step: Step) -> Tensor:
        """The window from the first token that is not settled: committed or likeliest tokens.

        A token that this step revoked is a mask.
        """
        start, stop = int(step.start[0]), min(int(step.stop[0]), self.span.last)
        guess = step.view.token[0, : stop - start]
        now = step.tokens[0, start:stop]
        undecided = (now == self.span.mask_id) & step.view.masked[0, : stop - start]
        draft = torch.where(undecided, guess, now)
        return draft[max(0, self.span.first + self.sent - start) :]
