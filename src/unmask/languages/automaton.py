"""TokenAutomaton: a regular language over tokens, with tokens that act alike in one class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
NOWHERE = -1  # in a table: no such transition; among classes: a token that is never allowed


@dataclass(frozen=True, eq=False)
class TokenAutomaton:
    """A deterministic automaton over tokens; two are equal if they read every text alike.

    Tokens that move every state alike are one class, so a table of states and classes says it all.
    """

    classes: Ints  # [V]     the class of each token, or NOWHERE
    table: Ints  # [S, C]  the next state, or NOWHERE
    accepting: Bools  # [S]     whether an answer may end there
    start: int = 0
    name: str = "the language"  # its notation

    @property
    def title(self) -> str:
        """The name, as far as it fits in a message."""
        return self.name if len(self.name) <= 80 else f"{self.name[:77]}..."

    @property
    def num_states(self) -> int:
        return len(self.table)

    @property
    def num_classes(self) -> int:
        return int(self.table.shape[1])

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the language as this automaton spells it."""
        parts = (self.classes, self.table, self.accepting, np.int64(self.start))
        return sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TokenAutomaton) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def ending(self, ends: tuple[int, ...], never: tuple[int, ...] = ()) -> TokenAutomaton:
        """The same language followed by end tokens only; tokens in `never` are left out.

        An accepting state and the state behind it take every end token. Without end tokens an
        answer fills its canvas.
        """
        if (ends, never) not in self._endings:
            self._endings[ends, never] = self._ending(ends, never)
        return self._endings[ends, never]

    @cached_property
    def _endings(self) -> dict[tuple[tuple[int, ...], tuple[int, ...]], TokenAutomaton]:
        """Results of `ending`."""
        return {}

    def _ending(self, ends: tuple[int, ...], never: tuple[int, ...]) -> TokenAutomaton:
        classes, (states, width) = self.classes.copy(), self.table.shape
        classes[list(never) + list(ends)] = NOWHERE
        usable = [token for token in ends if token not in never]
        if not usable:
            return replace(self, classes=classes)
        classes[usable] = width
        table = np.full((states + 1, width + 1), NOWHERE, dtype=np.int32)
        table[:states, :width] = self.table
        table[:states, width][self.accepting] = states
        table[states, width] = states
        return replace(
            self, classes=classes, table=table, accepting=np.append(self.accepting, True)
        )

    def run(self, tokens: Any) -> int:
        """The state after these tokens, or NOWHERE."""
        state = self.start
        for token in tokens:
            kind = self.classes[token]
            state = NOWHERE if kind < 0 else int(self.table[state, kind])
            if state < 0:
                break
        return state

    def accepts(self, tokens: Any) -> bool:
        """Whether these tokens are an answer."""
        state = self.run(tokens)
        return state >= 0 and bool(self.accepting[state])

    @cached_property
    def arcs(self) -> Arcs:
        """The transitions, grouped by the set of classes that makes them."""
        used = np.zeros(self.num_classes + 1, dtype=bool)
        used[self.classes] = True  # a class may have lost its tokens
        return Arcs.of(np.where(used[:-1], self.table, NOWHERE))

    def can_end_in(self, count: int) -> Floats:
        """0 for states from which `count` tokens lead to the end of an answer, else -inf: [S]."""
        known = self._ends
        while len(known) <= count:
            if len(known) > 1 and np.array_equal(known[-1], known[-2]):
                return known[-1]  # and so for every larger count
            known.append(self.arcs.by_source.largest(known[-1][self.arcs.target], self.num_states))
        return known[count]

    @cached_property
    def _ends(self) -> list[Floats]:
        return [np.where(self.accepting, 0.0, -np.inf)]

    def shortest(self) -> int | None:
        """How many tokens the shortest answer has; None if there is none."""
        for count in range(self.num_states):
            if np.isfinite(self.can_end_in(count)[self.start]):
                return count
        return None


@dataclass(frozen=True)
class Arcs:
    """Pairs of states with a transition; a label is the set of classes that makes it.

    Sums over tokens become sums over labels: equal sets are one label, whatever the states.
    """

    source: Ints  # [E]  ordered by source, then by target
    target: Ints  # [E]
    label: Ints  # [E]
    members: Ints  # [M]  the classes of label 0, of label 1, ...
    starts: NDArray[np.int64]  # [K]  where each label begins in `members`

    @classmethod
    def of(cls, table: Ints) -> Arcs:
        """The arcs of a table [S, C]."""
        known: dict[bytes, int] = {}
        rows: list[tuple[int, int, int]] = []
        sets: list[Ints] = []
        for state, targets in enumerate(table):
            classes = np.flatnonzero(targets >= 0).astype(np.int32)
            if not len(classes):
                continue
            classes = classes[np.argsort(targets[classes], kind="stable")]
            reached, first = np.unique(targets[classes], return_index=True)
            for after, members in zip(reached, np.split(classes, first[1:]), strict=True):
                number = known.setdefault(members.tobytes(), len(known))
                if number == len(sets):
                    sets.append(members)
                rows.append((state, int(after), number))
        source, target, label = np.array(rows, dtype=np.int32).reshape(-1, 3).T
        members = np.concatenate(sets) if sets else np.zeros(0, dtype=np.int32)
        sizes = np.array([len(each) for each in sets], dtype=np.int64)
        return cls(source, target, label, members, np.cumsum(sizes) - sizes)

    def classes_of(self, label: int) -> Ints:
        """The classes of a label."""
        end = self.starts[label + 1] if label + 1 < len(self.starts) else len(self.members)
        return self.members[self.starts[label] : end]

    @cached_property
    def by_source(self) -> Segments:
        """How the arcs lie by their source."""
        return Segments.of(self.source)

    @cached_property
    def by_target(self) -> Segments:
        """How the arcs lie by their target."""
        return Segments.of(self.target)

    @cached_property
    def by_label(self) -> Segments:
        """How the arcs lie by their label."""
        return Segments.of(self.label)

    @cached_property
    def label_of(self) -> NDArray[np.int64]:
        """The label that each member belongs to: [M]."""
        sizes = np.diff(np.append(self.starts, len(self.members)))
        return np.repeat(np.arange(len(self.starts)), sizes)

    @cached_property
    def by_class(self) -> Segments:
        """How the members of labels lie by their class."""
        return Segments.of(self.members)


@dataclass(frozen=True)
class Segments:
    """An order in which equal keys stand together."""

    order: NDArray[np.int64]  # [E]
    starts: NDArray[np.int64]  # [k]
    keys: Ints  # [k]  the keys that occur
    place: NDArray[np.int64]  # [E]  which key each element of the order has

    @classmethod
    def of(cls, keys: Ints) -> Segments:
        """The order of these keys."""
        order = np.argsort(keys, kind="stable")
        distinct, starts, counts = np.unique(keys[order], return_index=True, return_counts=True)
        return cls(order, starts, distinct, np.repeat(np.arange(len(distinct)), counts))

    def log_sums(self, values: Floats, size: int) -> Floats:
        """log sum exp of each key's values, -inf without any: [.., E] -> [.., size]."""
        out = np.full((*values.shape[:-1], size), -np.inf)
        if len(self.keys):
            out[..., self.keys] = log_sums(values[..., self.order], self.starts, self.place)
        return out

    def largest(self, values: Floats, size: int) -> Floats:
        """The largest value of each key, -inf for a key without any: [.., E] -> [.., size]."""
        out = np.full((*values.shape[:-1], size), -np.inf)
        if len(self.keys):
            out[..., self.keys] = np.maximum.reduceat(values[..., self.order], self.starts, axis=-1)
        return out


def log_sums(values: Floats, starts: NDArray[np.int64], place: NDArray[np.int64]) -> Floats:
    """log sum exp of runs of values: [.., E] -> [.., k]; nothing underflows."""
    top = np.maximum.reduceat(values, starts, axis=-1)
    shift = np.where(np.isfinite(top), top, 0.0)
    sums = np.add.reduceat(np.exp(values - shift[..., place]), starts, axis=-1)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(sums) + shift)
