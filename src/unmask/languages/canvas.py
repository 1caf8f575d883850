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
        return bool(np.isfinite(self.backward(0)[0][self.automaton.start]))

    def class_weights(self, places: Places) -> Floats:
        """log sum_s alpha_i(s) beta_{i+1}(delta(s, c)), every class at these places: [k, C]."""
        if not len(places):
            return np.zeros((0, self.automaton.num_classes))
        arcs, first, last = self.automaton.arcs, int(places.min()), int(places.max())
        alpha, beta = self.forward(last), self.backward(first + 1)
        along = alpha[places][:, arcs.source] + beta[places - first][:, arcs.target]
        labels = arcs.by_label.log_sums(along, len(arcs.starts))
        return arcs.by_class.log_sums(labels[:, arcs.label_of], self.automaton.num_classes)

    def forward(self, upto: int) -> Floats:
        """alpha at the positions 0 ... upto: [upto + 1, S]."""
        alpha = np.full((upto + 1, self.automaton.num_states), -np.inf)
        alpha[0, self.automaton.start] = 0.0
        arcs, labels = self.automaton.arcs, self._labels
        for place in range(upto):
            values = alpha[place]
            if self.kinds[place] != OPEN:
                alpha[place + 1] = self._moved(values, int(self.kinds[place]))
            elif place in labels:
                along = values[arcs.source] + labels[place][arcs.label]
                alpha[place + 1] = arcs.by_target.log_sums(along, len(values))
            else:
                alpha[place + 1] = arcs.by_target.largest(values[arcs.source], len(values))
        return alpha

    def backward(self, downto: int, largest: bool = False) -> Floats:
        """beta at the positions downto ... n: [n - downto + 1, S]; `largest`: of the best ends."""
        beta = np.empty((len(self.kinds) - downto + 1, self.automaton.num_states))
        arcs, labels = self.automaton.arcs, self._best_labels if largest else self._labels
        tail = self._open_tail
        for place in range(len(self.kinds), downto - 1, -1):
            if place >= len(self.kinds) - tail:
                beta[place - downto] = self.automaton.can_end_in(len(self.kinds) - place)
                continue
            values, kind = beta[place - downto + 1], int(self.kinds[place])
            if kind != OPEN:
                beta[place - downto] = self._looked_up(values, kind)
            elif place in labels:
                along = values[arcs.target] + labels[place][arcs.label]
                collect = arcs.by_source.largest if largest else arcs.by_source.log_sums
                beta[place - downto] = collect(along, values.shape[0])
            else:
                along = values[arcs.target]
                beta[place - downto] = arcs.by_source.largest(along, values.shape[0])
        return beta

    def best_classes(self) -> Places | None:
        """The classes of the best path at the weighed positions; None if no string fits: [m]."""
        beta, arcs = self.backward(0, largest=True), self.automaton.arcs
        state = self.automaton.start
        if not np.isfinite(beta[0, state]):
            return None
        taken: list[int] = []
        for place, kind in enumerate(self.kinds.tolist()):
            if kind != OPEN:
                state = int(self.automaton.table[state, kind])
                continue
            edges = np.searchsorted(arcs.source, [state, state + 1])
            leaving = slice(int(edges[0]), int(edges[1]))
            values, labels = beta[place + 1][arcs.target[leaving]], arcs.label[leaving]
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
