"""Prophet: the whole canvas at once when the answer's logits are far apart."""

from tests.helpers import MASK, random_lookup
from unmask import decode, infill

AT_ONCE = "confidence | top(1) | prophet({}, steps=9, early=0, mid=0, late=0, length=1)"


def test_a_given_token_behind_the_last_mask_counts_too():
    model = random_lookup(0)
    assert infill(model, [1, 2, MASK, MASK, MASK, 3], AT_ONCE.format(3)).nfe == 1


def test_positions_beyond_the_canvas_never_fill_it():
    model = random_lookup(0)
    assert decode(model, [1, 2], AT_ONCE.format(3), length=3).nfe == 3
    assert decode(model, [1, 2], AT_ONCE.format(2), length=3).nfe == 1
