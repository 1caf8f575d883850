"""A row's steps as transformers' streamers want them: put, put_draft, end."""

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
    """Tells a streamer of the one row that it can show; without a streamer it tells nobody.

    `put` gets the prompt and then every token once, as soon as it is final; together they are the
    row that generate returns, without padding. `put_draft`, where there is one, gets after each
    step what the model now thinks of the rest of the window. All are [1, n] on the host.
    """

    def __init__(self, streamer: Any, span: Span) -> None:
        self.streamer = streamer
        self.span = span
        self.sent = 0  # tokens of the answer

    @classmethod
    def of(
        cls, streamer: Any, inputs: Tensor, requests: Sequence[Request], spec: ModelSpec
    ) -> Streamed:
        """For a call of generate; the prompt is put at once."""
        if streamer is not None and len(requests) > 1:
            raise RequestError(f"a streamer shows one row, and there are {len(requests)}")
        if getattr(streamer, "_takes_logits", False):
            raise RequestError(
                "the streamer wants the logits of every draft; unmask computes those of masked "
                "positions only, so it can only have the tokens (_takes_logits = False)"
            )
        if streamer is not None:
            streamer.put(inputs.cpu())
        return cls(streamer, Span.of(spec, requests[0]))

    def take(self, step: Step) -> None:
        """Hand on what a step made final, and the draft of what it did not."""
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
        """The rest of the answer, and that there is no more."""
        if self.streamer is not None:
            self._put(answer)
            self.streamer.end()

    def _put(self, final: Sequence[int]) -> None:
        if len(final) > self.sent:
            self.streamer.put(torch.tensor([final[self.sent :]]))
            self.sent = len(final)

    def _draft(self, step: Step) -> Tensor:
        """The window from where nothing is final yet: committed tokens, else the likeliest.

        A commitment that was taken back in this step is a mask.
        """
        start, stop = int(step.start[0]), min(int(step.stop[0]), self.span.last)
        guess = step.view.token[0, : stop - start]
        now = step.tokens[0, start:stop]
        undecided = (now == self.span.mask_id) & step.view.masked[0, : stop - start]
        draft = torch.where(undecided, guess, now)
        return draft[max(0, self.span.first + self.sent - start) :]
