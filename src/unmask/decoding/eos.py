"""The EOS policies: what the end-of-text token does to a row after each step."""

from __future__ import annotations

import torch
from torch import Tensor

from unmask.decoding.state import State
from unmask.models.denoiser import ModelSpec


def is_stop(tokens: Tensor, stop_ids: tuple[int, ...]) -> Tensor:
    """True where a token ends an answer."""
    stops = torch.zeros_like(tokens, dtype=torch.bool)
    for token in stop_ids:
        stops |= tokens == token
    return stops


def first_stop(canvas: Tensor, answer: Tensor, stop_ids: tuple[int, ...]) -> int:
    """The position of the first end token that decoding wrote, or the last position: [L] x 2."""
    places = (is_stop(canvas, stop_ids) & answer).nonzero()
    return int(places[0]) if len(places) else len(canvas) - 1


class EosTail:
    """One EOS policy: `last` ranks end tokens last; `stop`, `block` and `fill` cut a row short."""

    def __init__(self, policy: str, spec: ModelSpec) -> None:
        self.policy = policy
        self.spec = spec

    @property
    def suppressed(self) -> tuple[int, ...]:
        """End tokens that are never predicted."""
        if self.policy != "suppress" or self.spec.eos_id is None:
            return ()
        return (self.spec.eos_id,)

    @property
    def last(self) -> tuple[int, ...]:
        """End tokens that are ranked after all others."""
        return self.spec.stop_ids if self.policy == "last" else ()

    def deferred(self, token: Tensor) -> Tensor | None:
        """True where a predicted token is to be ranked last; None if the policy ranks none: [N]."""
        return is_stop(token, self.last) if self.last else None

    def wanted(self, state: State, cells: Tensor) -> Tensor:
        """The cells that may be committed; under `stop`, none after a row's first EOS: [B, L]."""
        return cells & (self._ends(state).cumsum(-1) == 0) if self.policy == "stop" else cells

    def ended(self, state: State) -> Tensor:
        """True where a row has an end token and no mask before it: [B]."""
        ends = self._ends(state)
        return ends.any(-1) & ~(state.masked & (ends.cumsum(-1) == 0)).any(-1)

    def _ends(self, state: State) -> Tensor:
        return is_stop(state.tokens, self.spec.stop_ids) & state.answer & ~state.masked

    def apply(self, state: State) -> Tensor:
        """Write EOS over the cells that the policy cuts off; returns where: [B, L] bool."""
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
            done = self.ended(state)
        else:
            here = state.window
            done = (ends & here).any(-1) & ~(state.masked & here).any(-1)
        return state.masked & done[:, None]
