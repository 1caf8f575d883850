"""From an automaton over bytes to one over tokens: every token is walked once, classes together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unmask.errors import LanguageError, shown
from unmask.languages.automaton import NOWHERE, Ints, TokenAutomaton

MOST_ROUNDS = 1000  # of the search for equal states
MOST_CELLS = 1 << 25  # of the table of states and classes
MOST_WORK = 1 << 30  # states that all tokens together move


@dataclass(frozen=True, eq=False)
class ByteAutomaton:
    """A deterministic automaton over bytes: table [S, 256], NOWHERE without a transition."""

    table: Ints
    accepting: NDArray[np.bool_]  # [S]
    start: int = 0

    @classmethod
    def of(cls, arcs: Ints, start: int, final: Ints) -> ByteAutomaton:
        """From arcs (state, byte, next state), [E, 3]; the start becomes 0."""
        others = {*arcs[:, 0].tolist(), *arcs[:, 2].tolist(), *final.tolist()} - {start}
        states = np.array([start, *sorted(others)])
        number = {state: place for place, state in enumerate(states.tolist())}
        table = np.full((len(states), 256), NOWHERE, dtype=np.int32)
        renamed = [[number[state] for state in column.tolist()] for column in arcs[:, ::2].T]
        table[renamed[0], arcs[:, 1]] = renamed[1]
        return cls(table, np.isin(states, final)).minimal()

    def minimal(self) -> ByteAutomaton:
        """The least automaton of the same language: states with equal ends are one.

        A long chain of states, which takes a round for each of them, stays as it is.
        """
        table = np.where(self._live()[self.table] & (self.table >= 0), self.table, NOWHERE)
        columns = np.unique(table, axis=1)  # bytes that act alike are looked at once
        weights = np.random.default_rng(0).integers(1, 2**63, columns.shape[1] + 1, dtype=np.uint64)
        finer, count = self.accepting.astype(np.int64), 0
        for _ in range(MOST_ROUNDS):
            after = np.where(columns >= 0, finer[columns] + 1, 0).astype(np.uint64)
            keys = after @ weights[1:] + (finer.astype(np.uint64) + np.uint64(1)) * weights[0]
            kinds, first, finer = np.unique(keys, return_index=True, return_inverse=True)
            if len(kinds) == count:
                break
            count = len(kinds)
        else:
            first = finer = np.arange(len(table))
        moved = np.where(table[first] >= 0, finer[table[first]], NOWHERE).astype(np.int32)
        return ByteAutomaton(moved, self.accepting[first], int(finer[self.start]))._reached()

    def _live(self) -> NDArray[np.bool_]:
        """States from which an accepting one can be reached: [S]."""
        source, byte = np.nonzero(self.table >= 0)
        target = self.table[source, byte]
        order = np.argsort(target, kind="stable")
        source, edges = source[order], np.searchsorted(target[order], range(len(self.table) + 1))
        live: NDArray[np.bool_] = self.accepting.copy()
        waiting = np.flatnonzero(live).tolist()
        while waiting:
            state = waiting.pop()
            before = np.unique(source[edges[state] : edges[state + 1]])
            before = before[~live[before]]
            live[before] = True
            waiting.extend(before.tolist())
        return live

    def _reached(self) -> ByteAutomaton:
        """Without states that no text reaches; numbered in the order of a search from the start."""
        order, place = [self.start], 0
        known = {self.start: 0}
        while place < len(order):
            for after in np.unique(self.table[order[place]]):
                if after >= 0 and int(after) not in known:
                    known[int(after)] = len(order)
                    order.append(int(after))
            place += 1
        number = np.full(len(self.table) + 1, NOWHERE, dtype=np.int32)
        number[order] = np.arange(len(order))
        return ByteAutomaton(number[self.table[order]], self.accepting[order])


def over_tokens(
    language: ByteAutomaton, spellings: Sequence[bytes | None], name: str
) -> TokenAutomaton:
    """The same language over tokens, by the bytes of each; a token without any is never allowed.

    A text moves all states at once: it is a map of the states. Tokens with equal maps are a class.
    All tokens are walked together, one byte after the other, and equal maps are walked once.
    """
    words = [np.frombuffer(word or b"", dtype=np.uint8) for word in spellings]
    lengths = np.array([len(word) for word in words])
    order = np.argsort(-lengths, kind="stable")  # the longest first: those left are a beginning
    letters = np.zeros((len(words), int(lengths.max(initial=0))), dtype=np.uint8)
    for row, token in enumerate(order):
        letters[row, : lengths[token]] = words[token]
    maps = _Maps(language.table, name)
    at = np.zeros(len(words), dtype=np.int64)  # the map of each token so far
    sorted_lengths = -lengths[order]
    for column in range(letters.shape[1]):
        left = int(np.searchsorted(sorted_lengths, -column, side="left"))
        at[:left] = maps.after(at[:left], letters[:left, column])
    reached = np.empty_like(at)
    reached[order] = at
    reached[lengths == 0] = maps.nowhere
    kinds, classes = np.unique(reached, return_inverse=True)
    table = maps.rows(kinds).T  # [S, C]
    dead = (table < 0).all(0)
    number = np.where(dead, NOWHERE, np.cumsum(~dead) - 1).astype(np.int32)
    return TokenAutomaton(
        number[classes.reshape(-1)],
        np.ascontiguousarray(table[:, ~dead]),
        language.accepting,
        language.start,
        name,
    )


class _Maps:
    """Maps of the states that texts make, each kept once; map 0 is that of the empty text."""

    def __init__(self, table: Ints, name: str) -> None:
        self.name, self.work = name, 0
        self.table = np.vstack([table, np.full((1, 256), NOWHERE, dtype=np.int32)])
        same = np.arange(len(table), dtype=np.int32)
        self._all = [same, np.full_like(same, NOWHERE)]
        self._known = {row.tobytes(): number for number, row in enumerate(self._all)}
        self.nowhere = 1

    def after(self, maps: NDArray[np.int64], letters: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The map of each text with one more byte: [n] x 2 -> [n]."""
        pairs, back = np.unique(maps * 256 + letters, return_inverse=True)
        longer = np.array([self._longer(*divmod(int(pair), 256)) for pair in pairs], dtype=np.int64)
        return longer[back.reshape(-1)] if len(pairs) else maps

    def _longer(self, number: int, byte: int) -> int:
        if number == self.nowhere:
            return number
        self.work += len(self.table)
        if self.work > MOST_WORK or len(self._all) * len(self.table) > MOST_CELLS:
            raise LanguageError(
                f"{shown(self.name)} has too many states and ways between them for this "
                "vocabulary; use smaller repetitions, or fewer choices"
            )
        row = self.table[self._all[number], byte]
        key = row.tobytes()
        if key not in self._known:
            self._known[key] = len(self._all)
            self._all.append(row)
        return self._known[key]

    def rows(self, numbers: NDArray[np.int64]) -> Ints:
        """These maps: [k, S]."""
        return np.stack([self._all[number] for number in numbers])
