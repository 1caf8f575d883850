"""The scores that ship, by hand."""

from __future__ import annotations

import math

from tests.helpers import hand_view, table
from unmask.rules.registry import kinds
from unmask.rules.scores import confidence, entropy, margin, random


def test_confidence_is_the_probability_of_the_token():
    scores = confidence(hand_view([0.9, 0.5]))
    assert scores.value.tolist() == [[0.9, 0.5]]
    assert scores.key.tolist() == [[math.log(0.9), math.log(0.5)]]


def test_margin_is_the_lead_over_the_second():
    scores = margin(hand_view([0.9], margin=table([0.85])))
    assert scores.value.tolist() == [[0.85]]


def test_a_margin_of_zero_ranks_last_and_is_no_nan():
    scores = margin(hand_view([0.5, 0.5], margin=table([0.0, 0.1])))
    assert scores.key.tolist() == [[-math.inf, math.log(0.1)]]


def test_entropy_is_negative_and_in_nats():
    scores = entropy(hand_view([0.5], entropy=table([0.7])))
    assert scores.key.tolist() == scores.value.tolist() == [[-0.7]]


def test_random_is_the_number_that_was_drawn():
    scores = random(hand_view([0.5], draws=table([0.25])))
    assert scores.value.tolist() == [[0.25]]


def test_every_score_has_a_formula_and_a_source():
    assert all(kind.formula and kind.source and kind.summary for kind in kinds("score"))
