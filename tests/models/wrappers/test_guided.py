"""Classifier-free guidance."""

from __future__ import annotations

import pytest
import torch

from tests.helpers import MASK, Counting, canvas_of, logits_of, outcome, random_lookup
from unmask import Guided, ModelError, ModelSpec, decode, infill
from unmask.models.toys.oracle import TableOracle

CANVAS = canvas_of([1, 2, MASK, 3, MASK], given=2)


@pytest.mark.parametrize("scale", [0.0, 0.5, 2.0])
def test_guidance_is_its_formula(scale):
    model = random_lookup(0, dtype=torch.float64)
    conditional = logits_of(model, CANVAS)
    blind = canvas_of([MASK, MASK, MASK, 3, MASK], given=2)
    unconditional = logits_of(model, blind)
    wanted = unconditional + (scale + 1) * (conditional - unconditional)
    assert torch.equal(logits_of(Guided(model, scale), CANVAS), wanted)


def test_guidance_changes_the_answer_and_no_guidance_does_not():
    changed = []
    for seed in range(5):
        model = random_lookup(seed, dtype=torch.float64)
        plain = outcome(decode(model, [1, 2, 3], "confidence | top(1)", length=8))
        assert (
            outcome(decode(Guided(model, 0.0), [1, 2, 3], "confidence | top(1)", length=8)) == plain
        )
        strong = decode(Guided(model, 3.0), [1, 2, 3], "confidence | top(1)", length=8)
        changed.append(outcome(strong) != plain)
    assert any(changed)


def test_guidance_is_one_forward_of_twice_the_rows():
    model = Counting(random_lookup(0))
    result = decode(Guided(model, 1.0), [1], "confidence | top(1)", length=4)
    assert result.nfe == 4
    assert model.forwards == 4


def test_the_two_passes_have_keys_of_their_own():
    seen = []

    class Watching(Counting):
        def trunk(self, canvas):
            seen.append(canvas.keys)
            return super().trunk(canvas)

    Guided(Watching(random_lookup(0)), 1.0).trunk(CANVAS)
    assert len({key for keys in seen for key in keys}) == 2


@pytest.mark.parametrize("scale", [-0.1, float("nan"), float("inf")])
def test_the_scale_is_a_finite_number_of_at_least_zero(scale):
    with pytest.raises(ModelError, match="guidance scale must be >= 0"):
        Guided(random_lookup(0), scale)


def test_a_token_that_is_impossible_with_and_without_the_prompt_stays_impossible():
    oracle = TableOracle([[1, 2], [2, 1]], [1.0, 1.0], ModelSpec(5, 6))
    logits = logits_of(Guided(oracle, 1.0), canvas_of([1, 5], given=1, mask=5))
    assert not logits.isnan().any()
    assert logits[0, 1, [0, 3, 4]].tolist() == [-torch.inf] * 3
    assert infill(Guided(oracle, 1.0), [1, 5], "confidence | top(1)").canvas.tolist() == [1, 2]


def test_a_token_that_the_prompt_alone_forbids_stays_forbidden():
    oracle = TableOracle([[1, 2], [2, 1]], [1.0, 1.0], ModelSpec(5, 6))
    logits = logits_of(Guided(oracle, 1.0), canvas_of([1, 5], given=1, mask=5))
    assert logits[0, 1, 1] == -torch.inf
