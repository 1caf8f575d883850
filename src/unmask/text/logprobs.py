"""Log-probabilities of tokens at the forward that committed them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from unmask.decoding.request import Request
from unmask.decoding.results import Step
from unmask.kernels.reduce import working_dtype
from unmask.text.answers import Answer


@dataclass(frozen=True)
class TokenLogprob:
    """A committed token: its log-probability at its forward, and the likeliest tokens there."""

    token: int
    logprob: float
    forward: int  # the forward, from 0, that committed it
    top: tuple[tuple[int, float], ...] = ()  # ids and log-probabilities, the likeliest first


@dataclass
class CommitLogprobs:
    """Reads the steps of one row, by the model's own distribution at temperature 1.

    Tokens that no decision committed, such as those an EOS policy fills in, have none.
    """

    top: int = 0  # how many alternatives to keep
    at: dict[int, TokenLogprob] = field(default_factory=dict)  # by position of the canvas

    def see(self, step: Step, row: int) -> None:
        """Read a step, which has its logits."""
        assert step.logits is not None, "the steps are made with keep_logits"
        mine = (step.logits.rows == row).nonzero()[:, 0].tolist()
        cell_at = {int(step.logits.positions[cell]): cell for cell in mine}
        for position, token in _decided(step, row).items():
            if position in cell_at:
                logits, forward = step.logits.values[cell_at[position]], int(step.forward[row])
                self.at[position] = self._of(logits, token, forward)
        canvas = step.tokens[row].tolist()
        old = range(len(canvas)) if step.source is None else step.source[row].tolist()
        self.at = {  # without tokens that were taken back or written over
            new: self.at[was]
            for new, was in enumerate(old)
            if was in self.at and self.at[was].token == canvas[new]
        }

    def _of(self, logits: torch.Tensor, token: int, forward: int) -> TokenLogprob:
        logp = logits.to(working_dtype(logits)).log_softmax(-1)
        top = logp.topk(min(self.top, len(logp)))
        pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
        return TokenLogprob(token, float(logp[token]), forward, tuple(pairs))

    def of(self, request: Request, mask_id: int, count: int) -> list[TokenLogprob | None]:
        """Those of the first `count` tokens of an answer, or of all tokens of a filled canvas."""
        first = 0 if request.length is None else request.canvas.tolist().index(mask_id)
        places = range(first, len(request.canvas) if request.length is None else first + count)
        return [self.at.get(place) for place in places]


def _decided(step: Step, row: int) -> dict[int, int]:
    """The tokens that the decision of a step writes, by position of the canvas."""
    decision, start, tokens = step.decision, int(step.start[row]), step.view.token[row]
    columns = decision.chosen[row].nonzero()[:, 0].tolist()
    written = {start + column: int(tokens[column]) for column in columns}
    if decision.written is not None:
        edited = tokens if decision.tokens is None else decision.tokens[row]
        columns = decision.written[row].nonzero()[:, 0].tolist()
        written |= {start + column: int(edited[column]) for column in columns}
    return written


class RunLogprobs:
    """Log-probabilities of the rows of a run, with `top` alternatives; None: not wanted."""

    def __init__(self, top: int | None, mask_id: int) -> None:
        self.mask_id = mask_id
        self.top, self.wanted = top, top is not None
        self._rows: dict[int, CommitLogprobs] = {}

    def __call__(self, step: Step) -> None:
        for row, key in enumerate(step.keys if self.wanted else ()):
            self._rows.setdefault(key, CommitLogprobs(self.top or 0)).see(step, row)

    def record(self, key: int, request: Request, answer: Answer) -> dict[str, Any]:
        """What a finished row adds to its JSON: the prompt, and a number for each of its ids."""
        if not self.wanted:
            return {}
        prompt = request.canvas.tolist()
        if request.length is not None:
            prompt = prompt[: prompt.index(self.mask_id)]
        entries = self._rows.pop(key).of(request, self.mask_id, len(answer.ids))
        tops = [None if each is None else each.top for each in entries]
        return {
            "prompt_ids": prompt,
            "logprobs": [None if each is None else round(each.logprob, 6) for each in entries],
            "top_logprobs": [
                None if top is None else [[token, round(logprob, 6)] for token, logprob in top]
                for top in tops
            ],
        }
