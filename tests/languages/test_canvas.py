"""The exact core against enumeration: random automata, all strings."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.languages.automata import enumerated, random_automaton, random_canvas
from unmask.languages.automaton import TokenAutomaton
from unmask.languages.canvas import PartlyFilled


def class_masses(automaton: TokenAutomaton, logp: np.ndarray) -> np.ndarray:
    """The log-mass of every class: [m, V] -> [m, C]."""
    masses = np.full((len(logp), automaton.num_classes), -np.inf)
    for token, kind in enumerate(automaton.classes):
        if kind >= 0:
            masses[:, kind] = np.logaddexp(masses[:, kind], logp[:, token])
    return masses


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_marginals_equal_enumeration(seed):
    draw = np.random.default_rng(seed)
    automaton = random_automaton(draw)
    tokens, masked = random_canvas(draw, automaton)
    places = np.flatnonzero(masked)
    logp = np.log(draw.dirichlet(np.full(len(automaton.classes), 0.3), len(tokens)) + 1e-300)
    strings = enumerated(automaton, tokens, masked)
    row = PartlyFilled.of(automaton, tokens, masked)
    assert row.satisfiable() == bool(strings)
    if not strings or not len(places):
        return
    exact = np.zeros(logp.shape)
    for string in strings:
        weight = np.exp(logp[places, np.array(string)[places]].sum())
        exact[places, np.array(string)[places]] += weight
    exact = exact[places] / exact[places].sum(-1, keepdims=True)
    row = row.weigh(places, class_masses(automaton, logp[places]))
    padded = np.append(row.class_weights(places), np.full((len(places), 1), -np.inf), -1)
    scores = logp[places] + padded[:, automaton.classes]
    marginals = np.exp(scores - scores.max(-1, keepdims=True))
    marginals /= marginals.sum(-1, keepdims=True)
    assert np.abs(marginals - exact).max() < 1e-9


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_best_path_is_the_best_of_all_strings_and_open_masks_count_for_nothing(seed):
    draw = np.random.default_rng(seed)
    automaton = random_automaton(draw)
    tokens, masked = random_canvas(draw, automaton)
    strings = enumerated(automaton, tokens, masked)
    places = np.flatnonzero(masked & (draw.random(len(tokens)) < 0.6))
    weights = draw.normal(size=(len(places), automaton.num_classes)) * 3
    best = PartlyFilled.of(automaton, tokens, masked).weigh(places, weights).best_classes()
    if not strings:
        assert best is None
        return

    def value(string):
        return weights[np.arange(len(places)), automaton.classes[np.array(string)[places]]].sum()

    wanted = max(map(value, strings)) if len(places) else 0.0
    assert abs(weights[np.arange(len(places)), best].sum() - wanted) < 1e-9


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_mask_is_open_if_nothing_is_known_of_it(seed):
    """Weights at the first masks are those of all strings that some end completes."""
    draw = np.random.default_rng(seed)
    automaton = random_automaton(draw)
    tokens, masked = random_canvas(draw, automaton)
    middle = int(draw.integers(len(tokens) + 1))
    places = np.flatnonzero(masked[:middle])
    strings = enumerated(automaton, tokens, masked)
    if not strings or not len(places):
        return
    logp = np.log(draw.dirichlet(np.ones(len(automaton.classes)), len(places)))
    heads = {string[:middle] for string in strings}
    exact = np.zeros(logp.shape)
    for head in heads:
        here = np.array(head)[places]
        exact[np.arange(len(places)), here] += np.exp(logp[np.arange(len(places)), here].sum())
    exact /= exact.sum(-1, keepdims=True)
    row = PartlyFilled.of(automaton, tokens, masked).weigh(places, class_masses(automaton, logp))
    padded = np.append(row.class_weights(places), np.full((len(places), 1), -np.inf), -1)
    marginals = np.exp(logp + padded[:, automaton.classes])
    marginals /= marginals.sum(-1, keepdims=True)
    assert np.abs(marginals - exact).max() < 1e-9


def test_weights_far_below_the_smallest_float_still_decide():
    automaton = TokenAutomaton(
        np.array([0, 1, 2], dtype=np.int32),
        np.array([[1, 2, -1], [-1, -1, 3], [-1, 3, -1], [-1, -1, -1]], dtype=np.int32),
        np.array([False, False, False, True]),
    )
    masked = np.ones(2, dtype=bool)
    weights = np.array([[0.0, -5000.0, 0.0], [0.0, 0.0, -9000.0]])
    row = PartlyFilled.of(automaton, np.zeros(2, dtype=np.int64), masked).weigh(
        np.arange(2), weights
    )
    assert row.best_classes().tolist() == [1, 1]
    scores = row.class_weights(np.arange(2)) + weights
    assert scores[0, 1] == -5000
    assert scores[0, 0] == -9000


def test_end_tokens_follow_an_answer_and_nothing_follows_them():
    ab = TokenAutomaton(
        np.array([0, 1, -1, -1], dtype=np.int32),
        np.array([[1, -1], [-1, 0]], dtype=np.int32),
        np.array([True, False]),
    )  # (ab)*
    ending = ab.ending((2, 3))
    assert ending.shortest() == 0
    for string in product(range(4), repeat=4):
        text = "".join("ab.."[token] for token in string)
        assert ending.accepts(string) == (text in {"abab", "ab..", "...."})
    never = ab.ending((2, 3), never=(2, 3))
    assert never.accepts((0, 1))
    assert not never.accepts((0, 1, 2))
    assert ab.ending((2,), never=(1,)).accepts((2, 2))
    assert not ab.ending((2,), never=(1,)).accepts((0, 1))


def test_equal_automata_are_equal_and_hash_alike():
    first = random_automaton(np.random.default_rng(1))
    again = random_automaton(np.random.default_rng(1))
    assert first == again
    assert hash(first) == hash(again)
    assert first != random_automaton(np.random.default_rng(2))
