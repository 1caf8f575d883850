"""Exact answers about a canvas that is partly filled: marginals, satisfiability, best paths.

With p_i the distribution at a masked position and delta the transitions of the automaton,

    P(x_i = v)  ~  p_i(v) * sum_s alpha_i(s) * beta_{i+1}(delta(s, v))

alpha_i(s) sums the weights of all beginnings that lead to state s, beta_i(s) those of all ends from
s. A fixed token is a single choice. An open mask, of which nothing is known, may hold anything: it
counts only which states can be reached. All numbers are logarithms, so nothing underflows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unmask.languages.automaton import NOWHERE, Floats, TokenAutomaton, log_sums

Places = NDArray[np.int64]
OPEN = -2  # instead of a class: any token


@dataclass(frozen=True)
class PartlyFilled:
    """One row of n positions that a language spans: fixed tokens, open masks, weighed masks."""

    automaton: TokenAutomaton
    kinds: Places  # [n]  the class of a fixed token (NOWHERE: not allowed), or OPEN
    weighed: Places  # [m]  open positions with weights, in order
    weights: Floats  # [m, C]  log-weights of the classes there

    @classmethod
    def of(
        cls, automaton: TokenAutomaton, tokens: Places, masked: NDArray[np.bool_]
    ) -> PartlyFilled:
        """A row of tokens whose masks are open."""
        kinds = np.where(masked, OPEN, automaton.classes[np.where(masked, 0, tokens)])
        nothing = np.zeros(0, dtype=np.int64)
        return cls(automaton, kinds.astype(np.int64), nothing, np.zeros((0, automaton.num_classes)))

    def weigh(self, places: Places, weights: Floats) -> PartlyFilled:
        """The same with weights [m, C] at these positions, which are no longer fixed."""
        kinds = self.kinds.copy()
        kinds[places] = OPEN
        return replace(self, kinds=kinds, weighed=places, weights=weights)

    def satisfiable(self) -> bool:
        """Whether some string of the language fits."""
        place, state = self.fixed_start()
        return state != NOWHERE and bool(np.isfinite(self.backward(place, place)[0, state]))

    def class_weights(self, places: Places) -> Floats:
        """log sum_s alpha_i(s) beta_{i+1}(delta(s, c)), every class at these places: [k, C]."""
        if not len(places):
            return np.zeros((0, self.automaton.num_classes))
        arcs, first, last = self.automaton.arcs, int(places.min()), int(places.max())
        alpha, beta = self.forward(first, last), self.backward(first + 1, last + 1)
        along = alpha[places - first][:, arcs.source] + beta[places - first][:, arcs.target]
        labels = arcs.by_label.log_sums(along, len(arcs.starts))
        return arcs.by_class.log_sums(labels[:, arcs.label_of], self.automaton.num_classes)

    def forward(self, first: int, last: int) -> Floats:
        """alpha at the positions first ... last: [last - first + 1, S]."""
        alpha = np.empty((last - first + 1, self.automaton.num_states))
        values = np.full(self.automaton.num_states, -np.inf)
        place, state = self.fixed_start(first)
        if state != NOWHERE:
            values[state] = 0.0
        while True:
            if place >= first:
                alpha[place - first] = values
            if place == last:
                return alpha
            values, place = self._after(place, values), place + 1

    def backward(self, first: int, last: int, largest: bool = False) -> Floats:
        """beta at the positions first ... last: [last - first + 1, S]; `largest`: of best ends."""
        beta = np.empty((last - first + 1, self.automaton.num_states))
        count, tail = len(self.kinds), self._open_tail
        place = max(last, count - tail)
        values = self.automaton.can_end_in(count - place)
        while True:
            if place <= last:
                beta[place - first] = values
            if place == first:
                return beta
            place -= 1
            if place >= count - tail:
                values = self.automaton.can_end_in(count - place)
            else:
                values = self._before(place, values, largest)

    def fixed_start(self, before: int | None = None) -> tuple[int, int]:
        """The first mask, or `before` if that comes first, and the state or NOWHERE there."""
        place, state, table = 0, self.automaton.start, self.automaton.table
        stop = len(self.kinds) if before is None else before
        while place < stop and state != NOWHERE and (kind := int(self.kinds[place])) != OPEN:
            state = NOWHERE if kind == NOWHERE else int(table[state, kind])
            place += 1
        return place, state

    def _after(self, place: int, values: Floats) -> Floats:
        """alpha at the next position: [S]."""
        arcs, labels = self.automaton.arcs, self._labels
        if self.kinds[place] != OPEN:
            return self._moved(values, int(self.kinds[place]))
        along = values[arcs.source]
        if place in labels:
            return arcs.by_target.log_sums(along + labels[place][arcs.label], len(values))
        return arcs.by_target.largest(along, len(values))

    def _before(self, place: int, values: Floats, largest: bool) -> Floats:
        """beta at a position from that of the next one: [S]."""
        arcs, labels = self.automaton.arcs, self._best_labels if largest else self._labels
        if self.kinds[place] != OPEN:
            return self._looked_up(values, int(self.kinds[place]))
        along = values[arcs.target]
        if place not in labels:
            return arcs.by_source.largest(along, len(values))
        collect = arcs.by_source.largest if largest else arcs.by_source.log_sums
        return collect(along + labels[place][arcs.label], len(values))

    def best_classes(self) -> Places | None:
        """The classes of the best path at the weighed positions; None if no string fits: [m]."""
        arcs, (first, state) = self.automaton.arcs, self.fixed_start()
        last = max(first, int(self.weighed.max(initial=-1)) + 1)
        if state == NOWHERE:
            return None
        beta = self.backward(first, last, largest=True)
        if not np.isfinite(beta[0, state]):
            return None
        taken: list[int] = []
        for place in range(first, last):
            if (kind := int(self.kinds[place])) != OPEN:
                state = int(self.automaton.table[state, kind])
                continue
            edges = np.searchsorted(arcs.source, [state, state + 1])
            leaving = slice(int(edges[0]), int(edges[1]))
            values, labels = beta[place - first + 1][arcs.target[leaving]], arcs.label[leaving]
            if place in self._best_labels:
                values = values + self._best_labels[place][labels]
            arc = int(values.argmax())
            state = int(arcs.target[leaving][arc])
            if place in self._best_labels:
                members = arcs.classes_of(int(labels[arc]))
                taken.append(int(members[self.weights[len(taken)][members].argmax()]))
        return np.array(taken, dtype=np.int64)

    @cached_property
    def _open_tail(self) -> int:
        """How many positions at the end are masks of which nothing is known."""
        open_masks = self.kinds == OPEN
        open_masks[self.weighed] = False
        others = np.flatnonzero(~open_masks)
        return len(self.kinds) - (int(others[-1]) + 1 if len(others) else 0)

    @cached_property
    def _labels(self) -> dict[int, Floats]:
        """The log-weight of every label at the weighed positions, by position: [K] each."""
        arcs = self.automaton.arcs
        if not len(arcs.starts):
            return dict.fromkeys(self.weighed.tolist(), np.zeros(0))
        labels = log_sums(self.weights[:, arcs.members], arcs.starts, arcs.label_of)
        return dict(zip(self.weighed.tolist(), labels, strict=True))

    @cached_property
    def _best_labels(self) -> dict[int, Floats]:
        """The largest log-weight in every label at the weighed positions: [K] each."""
        arcs = self.automaton.arcs
        if not len(arcs.starts):
            return dict.fromkeys(self.weighed.tolist(), np.zeros(0))
        labels = np.maximum.reduceat(self.weights[:, arcs.members], arcs.starts, axis=-1)
        return dict(zip(self.weighed.tolist(), labels, strict=True))

    def _looked_up(self, values: Floats, kind: int) -> Floats:
        """The value of the state that a class leads to from each state: [S]."""
        if kind == NOWHERE:
            return np.full_like(values, -np.inf)
        after = self.automaton.table[:, kind]
        return np.where(after >= 0, values[after], -np.inf)

    def _moved(self, values: Floats, kind: int) -> Floats:
        """The values after every state has moved by a class: [S]."""
        out = np.full_like(values, -np.inf)
        if kind == NOWHERE:
            return out
        after = self.automaton.table[:, kind]
        live = (after >= 0) & np.isfinite(values)
        after, values = after[live], values[live]
        np.maximum.at(out, after, values)
        sums = np.bincount(after, np.exp(values - out[after]), len(out))
        return np.where(sums > 0, out + np.log(np.maximum(sums, 1.0)), -np.inf)
