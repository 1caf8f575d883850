"""The loop's output: a Step after each forward, a Result for each filled row."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from unmask.decoding.eos import first_stop
from unmask.decoding.state import Member, State
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
    complete: bool = False  # the answer is a text of its language, also without an end token

    @property
    def ids(self) -> list[int]:
        """The answer up to its first end token, which is left out."""
        ids: list[int] = self.answer.tolist()
        ends = (i for i, token in enumerate(ids) if token in self.stop_ids)
        return ids[: next(ends, len(ids))]

    @classmethod
    def of(
        cls, state: State, row: int, member: Member, stop_ids: tuple[int, ...], complete: bool
    ) -> Result:
        """The result of a row that has no mask left, with the tokens that were asked for."""
        end = int(state.length[row])
        canvas, answer = state.tokens[row, :end].clone(), state.answer[row, :end]
        if member.length is not None:  # the rest only fills up the last block
            answer = answer & (answer.cumsum(-1) <= member.length)
        commit = state.commit_step[row, :end].clone()
        upto = first_stop(canvas, answer, stop_ids) + 1
        return cls(
            key=member.key,
            canvas=canvas,
            answer=canvas[answer],
            commit_step=commit,
            nfe=int(state.nfe[row]),
            nfe_eos=int(commit[:upto][answer[:upto]].max()) + 1,
            stop_ids=stop_ids,
            kl_error=float(state.kl_error[row]),
            complete=complete,
        )


@dataclass(frozen=True)
class CellLogits:
    """The logits of N cells of the batch, suppressed tokens at -inf."""

    rows: Tensor  # [N] on the host, like all of a step except `values`
    positions: Tensor  # [N]
    values: Tensor  # [N, V] in the model's dtype, on its device; read-only


@dataclass(frozen=True)
class Step:
    """One step of B rows: the view, the decision, and the canvas after it."""

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
    logits: CellLogits | None = None  # with `keep_logits`
    # Where the canvas grows: the position of each cell before this step grew it; < 0 for new ones.
    # `filled`, `tokens` and `lengths` are those after it, all other fields are from before.
    source: Tensor | None = None  # [B, L]
