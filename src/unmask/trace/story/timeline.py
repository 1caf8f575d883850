"""The timeline of one position: what it was in each step, and what was written there."""

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
# behind: an end of text stood before it; stale: the forward did not compute it anew.
State = Literal["candidate", "fixed", "later", "behind", "stale"]


@dataclass(frozen=True)
class Look:
    """One candidate in one step, as the rule saw it. Ranks and steps count from 1."""

    trace: Trace
    step: int
    moment: Moment
    place: int

    @property
    def position(self) -> int:
        return int(self.moment.positions[self.place])

    @property
    def token(self) -> int:
        return int(self.moment.token[self.place])

    @property
    def confidence(self) -> float:
        return float(self.moment.confidence[self.place])

    @property
    def instability(self) -> float:
        """D, NaN where there was nothing to compare with."""
        return float(self.moment.instability[self.place])

    @property
    def base(self) -> float:
        """The score before modulators, in its own unit."""
        key = float(self.moment.base[self.place])
        return math.exp(key) if self.moment.logarithmic else key

    @property
    def score(self) -> float:
        """The score that ranked it, in its own unit."""
        return float(self.moment.value[self.place])

    @property
    def rank(self) -> int:
        return int(self.moment.rank[self.place]) + 1

    @property
    def base_rank(self) -> int:
        return int(self.moment.base_rank[self.place]) + 1

    @property
    def chosen(self) -> bool:
        """Committed by the rule, its limits or --steps."""
        return bool(self.moment.chosen[self.place])

    @property
    def selected(self) -> bool:
        """Taken by the selection itself."""
        return self.position in self.moment.selected

    @property
    def ready(self) -> bool:
        """Among those that the selection chose from."""
        return bool(self.moment.ready[self.place])

    @property
    def given(self) -> bool:
        """Whether the step's decision was another run's, of which this one is a branch."""
        return self.step <= given_steps(self.trace)

    @property
    def unweighted(self) -> bool | None:
        """Whether lam = 0 would have committed it in this step; None without SWD."""
        there = self.moment.unweighted
        return None if there is None or self.given else self.position in there

    @property
    def line(self) -> int:
        """Its place, from 1, among those that the selection chose from."""
        ahead = self.moment.ready & (self.moment.rank < self.moment.rank[self.place])
        return int(ahead.sum()) + 1

    @property
    def ahead(self) -> list[Look]:
        """Who stood before it in this step, the best first."""
        queue = self.moment.queue[: self.rank - 1]
        return [Look(self.trace, self.step, self.moment, place) for place in queue]


@dataclass(frozen=True)
class Entry:
    """One step: what the position was in it, before anything was written."""

    step: int
    state: State
    look: Look | None = None


@dataclass(frozen=True)
class Event:
    """Something that was done to the position."""

    step: int
    kind: Literal["commit", "revoke", "fill"]
    token: int


@dataclass(frozen=True)
class Timeline:
    """All steps of one position that decoding was asked to write."""

    trace: Trace
    position: int
    only: int | None = None  # look at this step alone

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries())

    @cached_property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events())

    @property
    def looks(self) -> list[Look]:
        """The steps in which it was a candidate."""
        found = [entry.look for entry in self.entries if entry.look is not None]
        return [look for look in found if self.only in (None, look.step)]

    @property
    def waits(self) -> list[Look]:
        """The steps in which it was a candidate and was not committed."""
        return [look for look in self.looks if not look.chosen]

    @property
    def last(self) -> Event | None:
        """What its present token comes from; None while it is open."""
        if not self.events or self.events[-1].kind == "revoke":
            return None
        return self.events[-1]

    def look(self, step: int) -> Look | None:
        """How it looked in a step, counted from 1, if it was a candidate."""
        return self.entries[step - 1].look

    @property
    def guesses(self) -> list[list[Look]]:
        """The steps of the same prediction together, in order."""
        return [list(run) for _, run in groupby(self.looks, key=lambda look: look.token)]

    def _entries(self) -> Iterator[Entry]:
        masked, events = True, iter(self.events)
        event = next(events, None)
        for step, moment in enumerate(self.trace.moments, 1):
            yield self._entry(step, moment, masked)
            while event is not None and event.step == step:
                masked, event = event.kind == "revoke", next(events, None)

    def _entry(self, step: int, moment: Moment, masked: bool) -> Entry:
        if not masked:
            return Entry(step, "fixed")
        place = moment.place(self.position)
        if place is not None:
            return Entry(step, "candidate", Look(self.trace, step, moment, place))
        if not moment.window[0] <= self.position < moment.window[1]:
            return Entry(step, "later")
        behind = self.trace.settings.eos == "stop" and end_before(self, step) is not None
        return Entry(step, "behind" if behind else "stale")

    def _events(self) -> Iterator[Event]:
        """In the order of the loop: commit, take back, then the EOS policy."""
        here, mask = self.position, self.trace.spec.mask_id
        for step, moment in enumerate(self.trace.moments, 1):
            if here in moment.committed:
                yield Event(step, "commit", moment.committed[here])
            if here in moment.revoked:
                yield Event(step, "revoke", mask)
            if here in moment.filled:
                yield Event(step, "fill", moment.filled[here])


def given_steps(trace: Trace) -> int:
    """How many steps a branch took over from its run; 0 where the trace is no branch."""
    branch = trace.header.get("branch")
    return int(branch["step"]) if branch else 0


def end_before(timeline: Timeline, step: int) -> int | None:
    """The first end of text that was written before the position, before this step."""
    trace = timeline.trace
    before = trace.canvas_after(step - 1)[: timeline.position]
    written = trace.canvas[: timeline.position] == trace.spec.mask_id
    found = (np.isin(before, trace.spec.stop_ids) & written).nonzero()[0]
    return int(found[0]) if len(found) else None
