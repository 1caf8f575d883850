"""Random automata and canvases, and all strings that fit them."""

from __future__ import annotations

import numpy as np

from unmask.languages.automaton import TokenAutomaton


def random_automaton(
    draw: np.random.Generator, vocabulary: int | None = None, states: int | None = None
) -> TokenAutomaton:
    """A few states, classes and tokens; some tokens are never allowed."""
    states = states or int(draw.integers(1, 6))
    classes, vocabulary = int(draw.integers(1, 5)), vocabulary or int(draw.integers(2, 7))
    table = draw.integers(-1, states, (states, classes)).astype(np.int32)
    accepting = draw.random(states) < 0.5
    kinds = draw.integers(-1, classes, vocabulary).astype(np.int32)
    return TokenAutomaton(kinds, table, accepting, int(draw.integers(states)))


def random_canvas(
    draw: np.random.Generator, automaton: TokenAutomaton
) -> tuple[np.ndarray, np.ndarray]:
    """Up to 6 positions, of which some are masks."""
    length = int(draw.integers(1, 7))
    masked = draw.random(length) < draw.choice([0.5, 0.8, 1.0])
    return draw.integers(0, len(automaton.classes), length), masked


def enumerated(
    automaton: TokenAutomaton, tokens: np.ndarray, masked: np.ndarray
) -> list[tuple[int, ...]]:
    """Every string of the language that agrees with the fixed tokens."""
    beginnings = [((), automaton.start)]
    for token, hole in zip(tokens.tolist(), masked, strict=True):
        choices = range(len(automaton.classes)) if hole else [token]
        steps = [(*string, v) for string, _ in beginnings for v in choices]
        runs = ((string, automaton.run(string)) for string in steps)
        beginnings = [(string, state) for string, state in runs if state >= 0]
    return [string for string, state in beginnings if automaton.accepting[state]]
