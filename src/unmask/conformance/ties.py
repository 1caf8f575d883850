"""Exact ties: upstream may take another position of the same score, and a run can follow it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unmask.decoding.decide import by_rule
from unmask.decoding.loop import Batch
from unmask.decoding.request import Request, Settings
from unmask.decoding.results import Step
from unmask.decoding.state import State
from unmask.models.denoiser import Denoiser
from unmask.rules.rule import Decision, Rule
from unmask.rules.view import Scores, View
from unmask.rules.words import counted

Written = dict[int, int]  # position -> token of one forward
Steps = Callable[[Denoiser, Sequence[Request]], Iterator[Step]]
Compare = Callable[[torch.dtype, Steps], Iterator[str]]  # the differences of a run in this dtype


@dataclass(frozen=True)
class Tie:
    """A step in which positions had exactly the same score in float64."""

    row: int
    step: int
    score: float  # in its own unit
    ours: tuple[int, ...]  # of the tied positions, those that this build takes
    upstream: tuple[int, ...]
    written: frozenset[int]  # everything that upstream wrote in this step

    def __str__(self) -> str:
        named = " and ".join(str(list(positions)) for positions in (self.upstream, self.ours))
        return (
            f"row {self.row}, step {self.step}: positions {named} have exactly the same score in "
            f"float64, {self.score!r}; upstream took the first, this build the second"
        )


def tied(golden: Sequence[Sequence[Written]], compare: Compare, dtype: torch.dtype) -> str:
    """The proof that a case differs by exact ties alone, "" if it does not.

    golden: what upstream wrote in each useful forward of each row.

    A run in float64 finds the ties. Both it and a run in `dtype` then take what upstream took in
    these steps, and must agree with the golden case in everything else.
    """
    finder = _Follower(golden)
    if next(compare(torch.float64, finder.run), "") or not finder.ties:
        return ""
    follower = _Follower(golden, finder.ties)
    if next(compare(dtype, follower.run), ""):
        return ""
    first, *others = finder.ties.values()
    more = f"; {counted(len(others), 'more such step')}" if others else ""
    return f"{first}{more}; all else agrees"


class _Follower:
    """Decides by the rule, but takes what upstream took where there is a tie.

    ties: known ones, by row and step (default: it proves them itself, by the numbers of its run).
    """

    def __init__(
        self,
        golden: Sequence[Sequence[Written]],
        ties: dict[tuple[int, int], Tie] | None = None,
    ) -> None:
        self.golden, self.proves = golden, ties is None
        self.ties: dict[tuple[int, int], Tie] = {} if ties is None else ties
        self._keys: list[int] = []

    def run(self, model: Denoiser, requests: Sequence[Request]) -> Iterator[Step]:
        """The steps of all requests in one batch; they have equal settings."""
        batch = Batch(model, decide=self)
        for request in requests:
            batch.admit(request)
        while len(batch):
            (rows,) = batch.groups.values()
            self._keys = rows.keys
            yield from batch.step()

    def __call__(self, settings: Settings, state: State, view: View) -> tuple[View, Decision]:
        view, decision = by_rule(settings, state, view)
        chosen = decision.chosen.clone()
        for row, key in enumerate(self._keys):
            step, start = int(state.nfe[row]), int(state.start[row])
            if self.proves and step < len(self.golden[key]):
                wanted = self.golden[key][step]
                tie = _proven(settings.rule, view.row(row), wanted, start, (key, step))
                self.ties |= {(key, step): tie} if tie else {}
            if (key, step) in self.ties:
                places = [position - start for position in self.ties[key, step].written]
                chosen[row] = False
                chosen[row, places] = True
        return view, replace(decision, chosen=chosen)


def _proven(
    rule: Rule, view: View, wanted: Written, start: int, name: tuple[int, int]
) -> Tie | None:
    """The tie by which the rule would write `wanted`; None if it writes that, or there is none.

    The positions that differ must have one score, bit for bit. With the score of upstream's raised
    by one unit in the last place, the rule must choose what upstream wrote, with the same tokens.
    """
    decision, width = rule(view), view.masked.shape[-1]
    places = [position - start for position in wanted]
    if not all(0 <= place < width for place in places):
        return None
    theirs = torch.zeros_like(view.masked)
    theirs[0, places] = True
    key, differs = decision.scores.key, theirs ^ decision.chosen
    if not bool(differs.any()) or bool((theirs & ~view.masked).any()):
        return None
    if view.token[0, places].tolist() != list(wanted.values()):
        return None
    level = key[differs][0]
    if not bool((key[differs] == level).all()):
        return None
    favoured = theirs & (key == level)
    nudged = replace(rule, modulators=(*rule.modulators, _Nudge(favoured)))
    if not torch.equal(nudged(view).chosen, theirs):
        return None

    def absolute(positions: Tensor) -> tuple[int, ...]:
        return tuple((positions[0].nonzero()[:, 0] + start).tolist())

    ours, upstream = decision.chosen & differs, theirs & differs
    score = float(decision.scores.value[differs][0])
    return Tie(*name, score, absolute(ours), absolute(upstream), frozenset(wanted))


@dataclass(frozen=True, eq=False)
class _Nudge:
    """A modulator that puts some positions before all others of the same score."""

    favoured: Tensor  # [B, W] bool

    def __call__(self, view: View, scores: Scores) -> Scores:
        upwards = torch.full_like(scores.key, torch.inf)
        key = torch.where(self.favoured, scores.key.nextafter(upwards), scores.key)
        return replace(scores, key=key)
