"""Automata over bytes become automata over tokens, and least ones read the same texts."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.languages.spelled import ByteAutomaton, over_tokens


def random_bytes(draw: np.random.Generator) -> ByteAutomaton:
    """An automaton over the letters a, b and c."""
    states = int(draw.integers(1, 7))
    table = np.full((states, 256), -1, dtype=np.int32)
    table[:, 97:100] = draw.integers(-1, states, (states, 3))
    return ByteAutomaton(table, draw.random(states) < 0.4, int(draw.integers(states)))


def reads(automaton: ByteAutomaton, text: bytes) -> bool:
    state = automaton.start
    for byte in text:
        state = int(automaton.table[state, byte])
        if state < 0:
            return False
    return bool(automaton.accepting[state])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_least_automaton_reads_the_same_texts(seed):
    automaton = random_bytes(np.random.default_rng(seed))
    least = automaton.minimal()
    assert len(least.table) <= len(automaton.table)
    for length in range(6):
        for letters in product(b"abc", repeat=length):
            assert reads(least, bytes(letters)) == reads(automaton, bytes(letters))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_tokens_read_what_their_bytes_read(seed):
    draw = np.random.default_rng(seed)
    automaton = random_bytes(draw)
    words = [b"a", b"b", b"c", None, b"ab", b"ba", b"abc", b"cc", b"ab", b"aaaa", b""]
    tokens = over_tokens(automaton, words, "letters")
    assert tokens.classes[3] == tokens.classes[10] == -1
    assert tokens.classes[4] == tokens.classes[8]
    for string in product([0, 1, 2, 4, 6, 9], repeat=3):
        assert tokens.accepts(string) == reads(automaton, b"".join(words[t] for t in string))


def test_equal_states_and_states_that_lead_nowhere_are_dropped():
    table = np.full((5, 256), -1, dtype=np.int32)
    table[0, 97], table[0, 98], table[0, 99] = 1, 2, 3  # 3 leads nowhere, 4 is never reached
    least = ByteAutomaton(table, np.array([False, True, True, False, True])).minimal()
    assert least.table.shape == (2, 256)
    assert least.table[0, 97] == least.table[0, 98] == 1
    assert least.table[0, 99] == -1
