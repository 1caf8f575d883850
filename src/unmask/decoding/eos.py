"""What the end-of-text token does to the rest of a row, after each step."""

from __future__ import annotations

import torch
from torch import Tensor

from unmask.decoding.state import State
from unmask.decoding.windows import in_window
from unmask.models.denoiser import ModelSpec
from unmask.rules.view import ABSENT


def is_stop(tokens: Tensor, stop_ids: tuple[int, ...]) -> Tensor:
    """True where a token ends an answer."""
    found = torch.zeros_like(tokens, dtype=torch.bool)
    for token in stop_ids:
        found |= tokens == token
    return found


def first_stop(canvas: Tensor, answer: Tensor, stop_ids: tuple[int, ...]) -> int:
    """The position of the first end token that decoding wrote, or the last position: [L] x 2."""
    found = (is_stop(canvas, stop_ids) & answer).nonzero()
    return int(found[0]) if len(found) else len(canvas) - 1


class EosTail:
    """The EOS policies of the loop: `last` ranks, `stop`, `block` and `fill` cut a row short."""

    def __init__(self, policy: str, spec: ModelSpec) -> None:
        self.policy = policy
        self.spec = spec

    def deferred(self, token: Tensor) -> Tensor:
        """True where a prediction that ends the answer is to be ranked last, or ABSENT: [N]."""
        if self.policy != "last":
            return ABSENT
        return is_stop(token, self.spec.stop_ids)

    def wanted(self, state: State) -> Tensor:
        """False behind the first EOS where the row stops there: not worth a commit: [B, L]."""
        if self.policy != "stop":
            return torch.ones_like(state.masked)
        return self._ends(state).cumsum(-1) == 0

    def _ends(self, state: State) -> Tensor:
        return is_stop(state.tokens, self.spec.stop_ids) & state.answer & ~state.masked

    def apply(self, state: State) -> Tensor:
        """Write EOS over what no longer matters; returns where it was written: [B, L] bool."""
        nothing = torch.zeros_like(state.masked)
        if self.policy not in ("stop", "block", "fill"):
            return nothing
        ends = self._ends(state)
        if not bool(ends.any()):
            return nothing
        behind = (ends.cumsum(-1) - ends.long() > 0) & state.answer
        filled = self._to_fill(state, ends, behind)
        assert self.spec.eos_id is not None
        state.tokens[filled] = self.spec.eos_id
        state.masked[filled] = False
        state.commit_step[filled] = state.nfe[:, None].expand(filled.shape)[filled]
        return filled

    def _to_fill(self, state: State, ends: Tensor, behind: Tensor) -> Tensor:
        if self.policy == "fill":
            return behind & (state.tokens != self.spec.eos_id)
        if self.policy == "stop":
            open_before = (state.masked & (ends.cumsum(-1) == 0)).any(-1)
            done = ends.any(-1) & ~open_before
        else:
            here = in_window(state)
            done = (ends & here).any(-1) & ~(state.masked & here).any(-1)
        return state.masked & done[:, None]
