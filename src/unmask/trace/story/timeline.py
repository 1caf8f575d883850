"""The timeline of one position: its state in each step, and what was written there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Literal

import numpy as np

from unmask.trace.recording.reading import Moment, Trace

# candidate: the rule saw it; fixed: it had a token; later: its block was not open yet;
# behind: an end of text stood before it; stale: the cache did not recompute it.
State = Literal["candidate", "fixed", "later", "behind", "stale"]


@dataclass(frozen=True)
class Look:
    """One candidate in one step, as the rule saw it. Ranks and steps count from 1."""

    trace: Trace
    step: int
    moment: Moment
    place: int  # its index in the arrays of the moment
    position: int
    token: int
    confidence: float
    instability: float  # D, NaN where there is nothing to compare with
    score: float  # after modulators, in its own unit
    rank: int
    base_rank: int
    chosen: bool  # committed, by the selection, a limit or --steps
    ready: bool  # the selection could choose it

    @classmethod
    def of(cls, trace: Trace, step: int, moment: Moment, place: int) -> Look:
        """The candidate at an index of a moment."""
        return cls(
            trace,
            step,
            moment,
            place,
            position=int(moment.positions[place]),
            token=int(moment.token[place]),
            confidence=float(moment.confidence[place]),
            instability=float(moment.instability[place]),
            score=float(moment.value[place]),
            rank=int(moment.rank[place]) + 1,
            base_rank=int(moment.base_rank[place]) + 1,
            chosen=bool(moment.chosen[place]),
            ready=bool(moment.ready[place]),
        )

    @property
    def base(self) -> float:
        """The score before modulators, in its own unit."""
        key = float(self.moment.base[self.place])
        return math.exp(key) if self.moment.logarithmic else key

    @property
    def selected(self) -> bool:
        """Whether the selection itself chose it."""
        return self.position in self.moment.selected

    @property
    def given(self) -> bool:
        """Whether this run is a branch and the step repeats the original run."""
        return self.step <= given_steps(self.trace)

    @property
    def unweighted(self) -> bool | None:
        """Whether lam = 0 would have committed it in this step; None without SWD."""
        there = self.moment.unweighted
        return None if there is None or self.given else self.position in there

    @property
    def ahead(self) -> list[Look]:
        """The candidates with a better rank in this step, the best first."""
        queue = self.moment.queue[: self.rank - 1]
        return [Look.of(self.trace, self.step, self.moment, place) for place in queue]


@dataclass(frozen=True)
class StepState:
    """The state of the position in one step, before the step wrote anything."""

    step: int
    state: State
    look: Look | None = None


@dataclass(frozen=True)
class PositionEvent:
    """A change of the position: a commitment, a revocation, or a token of the EOS policy."""

    step: int
    kind: Literal["commit", "revoke", "fill"]
    token: int


@dataclass(frozen=True)
class Timeline:
    """All steps of one position that was a mask before the first step."""

    trace: Trace
    position: int
    only: int | None = None  # leave out all other steps

    @cached_property
    def entries(self) -> list[StepState]:
        fixed_after = {event.step: event.kind != "revoke" for event in self.events}
        entries, fixed = [], False
        for step, moment in enumerate(self.trace.moments, 1):
            entries.append(self._entry(step, moment, fixed))
            fixed = fixed_after.get(step, fixed)
        return entries

    @cached_property
    def events(self) -> tuple[PositionEvent, ...]:
        return tuple(self._events())

    @cached_property
    def looks(self) -> list[Look]:
        """The steps in which it was a candidate."""
        looks = [entry.look for entry in self.entries if entry.look is not None]
        return [look for look in looks if self.only in (None, look.step)]

    @property
    def waits(self) -> list[Look]:
        """The steps in which it was a candidate and was not committed."""
        return [look for look in self.looks if not look.chosen]

    @property
    def last(self) -> PositionEvent | None:
        """The event that wrote its present token; None if it is a mask."""
        if not self.events or self.events[-1].kind == "revoke":
            return None
        return self.events[-1]

    @property
    def guesses(self) -> list[list[Look]]:
        """The steps in order, grouped by prediction."""
        return [list(run) for _, run in groupby(self.looks, key=lambda look: look.token)]

    def _entry(self, step: int, moment: Moment, fixed: bool) -> StepState:
        if fixed:
            return StepState(step, "fixed")
        place = moment.place(self.position)
        if place is not None:
            return StepState(step, "candidate", Look.of(self.trace, step, moment, place))
        if not moment.window[0] <= self.position < moment.window[1]:
            return StepState(step, "later")
        behind = self.trace.settings.eos == "stop" and end_before(self, step) is not None
        return StepState(step, "behind" if behind else "stale")

    def _events(self) -> Iterator[PositionEvent]:
        """The events in the order of the loop: commit, take back, then the EOS policy."""
        here, mask = self.position, self.trace.spec.mask_id
        for step, moment in enumerate(self.trace.moments, 1):
            if here in moment.committed:
                yield PositionEvent(step, "commit", moment.committed[here])
            if here in moment.revoked:
                yield PositionEvent(step, "revoke", mask)
            if here in moment.filled:
                yield PositionEvent(step, "fill", moment.filled[here])


def given_steps(trace: Trace) -> int:
    """The number of steps that a branch repeats; 0 if the trace is not a branch."""
    branch = trace.header.get("branch")
    return int(branch["step"]) if branch else 0


def end_before(timeline: Timeline, step: int) -> int | None:
    """The first end of text that was written before the position, before this step."""
    trace = timeline.trace
    before = trace.canvas_after(step - 1)[: timeline.position]
    written = trace.canvas[: timeline.position] == trace.spec.mask_id
    ends = (np.isin(before, trace.spec.stop_ids) & written).nonzero()[0]
    return int(ends[0]) if len(ends) else None
