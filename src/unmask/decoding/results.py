"""What the loop hands out: a Step after each forward, a Result when a row is filled."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from unmask.rules.rule import Decision
from unmask.rules.view import View


@dataclass(frozen=True)
class Result:
    """A filled canvas and what it cost."""

    key: int  # the request's number, in the order of admission
    canvas: Tensor  # [L] token ids
    answer: Tensor  # [A] the ids that decoding wrote, in order
    commit_step: Tensor  # [L] the forward (from 0) that fixed each position, -1 where given
    nfe: int  # forwards over the full window
    nfe_eos: int  # forwards until everything up to the first EOS was fixed
    stop_ids: tuple[int, ...] = ()
    kl_error: float = 0.0  # of a sparse history: how much higher a KL may be than was computed

    @property
    def ids(self) -> list[int]:
        """The answer up to its first end token, which is left out."""
        ids: list[int] = self.answer.tolist()
        ends = (i for i, token in enumerate(ids) if token in self.stop_ids)
        return ids[: next(ends, len(ids))]


@dataclass(frozen=True)
class CellLogits:
    """What the model said about N cells of the batch, suppressed tokens at -inf."""

    rows: Tensor  # [N] on the host, as all of a step but these values
    positions: Tensor  # [N]
    values: Tensor  # [N, V] in the model's dtype, on its device; read only


@dataclass(frozen=True)
class Step:
    """One step of B rows: what the rule saw and decided, and the canvas after it."""

    keys: tuple[int, ...]  # which requests
    forward: Tensor  # [B]  how many forwards the row had before this one
    start: Tensor  # [B]  first canvas position of the row's window
    stop: Tensor  # [B]  one past its last
    view: View
    decision: Decision
    filled: Tensor  # [B, L] bool: written by the EOS policy, not by the rule
    tokens: Tensor  # [B, L] the canvas after the step
    lengths: Tensor  # [B]
    finished: tuple[Result, ...]
    logits: CellLogits | None = None  # where they were asked for
