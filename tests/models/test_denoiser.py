"""The spec of a model."""

from __future__ import annotations

import pytest

from unmask import ModelError, ModelSpec


def test_the_eos_token_ends_an_answer_unless_others_are_named():
    assert ModelSpec(3, 4, 2).stop_ids == (2,)
    assert ModelSpec(3, 4, 2, (1, 2)).stop_ids == (1, 2)
    assert ModelSpec(3, 4).stop_ids == ()


@pytest.mark.parametrize(
    "knobs",
    [
        {"mask_id": 4, "vocab_size": 4},
        {"mask_id": -1, "vocab_size": 4},
        {"mask_id": 3, "vocab_size": 4, "eos_id": 9},
        {"mask_id": 3, "vocab_size": 4, "eos_id": 2, "stop_ids": (2, 7)},
        {"mask_id": 3, "vocab_size": 4, "eos_id": 9, "stop_ids": (2,)},
    ],
    ids=str,
)
def test_special_tokens_lie_inside_the_vocabulary(knobs):
    with pytest.raises(
        ModelError, match=r"model: [a-z]+_ids? -?\d lies outside .* 0..3; give the right one"
    ):
        ModelSpec(**knobs)


def test_a_block_that_no_canvas_could_be_filled_up_to_is_refused():
    for block in (0, -4, 10**6, 10**5000):
        with pytest.raises(ModelError, match="must be from 1 to 4096, got"):
            ModelSpec(mask_id=0, vocab_size=4, block=block)
