"""Laws for every window policy of the table."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import SPEC, alone, random_view, texts, widened
from unmask import Rule

TEXTS = [*texts("window"), "adablock(1-2-3-4-5, tau=0.1)"]
WINDOWS = {
    text: Rule.parse(f"{text} | confidence | top(1)").for_model(SPEC).window for text in TEXTS
}
SEEDS = st.integers(0, 2**16)

every_window = pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)


@every_window
@given(seed=SEEDS, block=st.sampled_from([None, 3, 6]), columns=st.integers(0, 5))
def test_rows_get_the_window_that_they_would_get_alone(window, seed, block, columns):
    view = random_view(seed)
    whole = window(widened(view, columns), block)
    for b in range(3):
        assert torch.equal(whole[b : b + 1], window(alone(view, b), block))


@every_window
@given(seed=SEEDS, block=st.sampled_from([None, 3, 6]))
def test_a_window_holds_the_first_mask_and_is_no_wider_than_its_reach(window, seed, block):
    view = random_view(seed)
    first = view.masked.to(torch.uint8).argmax(-1)
    width = window(view, block) - first
    some = view.masked.any(-1)
    assert (width >= 1)[some].all()
    assert (width <= window.reach(view.progress.answer_length, block))[some].all()
