"""Windows: which positions are open, and how many forwards they may take."""

from __future__ import annotations

import pytest
import torch

from tests.helpers import MASK
from unmask.decoding.state import State
from unmask.decoding.windows import forwards_here, open_windows, windows_after


def state_of(canvas, block=None):
    state = State.of([torch.tensor(canvas)], MASK, block, 0)
    open_windows(state, block)
    return state


def span(state):
    return int(state.start), int(state.stop)


def fill(state, *positions):
    state.masked[0, list(positions)] = False


def test_the_full_window_runs_from_the_first_mask_to_the_last():
    assert span(state_of([1, MASK, 2, MASK, 3])) == (1, 4)


def test_a_block_begins_at_the_first_mask():
    assert span(state_of([1, 2, MASK, MASK, MASK], 2)) == (2, 4)


def test_the_last_block_ends_with_the_answer():
    state = state_of([1, MASK, MASK, MASK], 2)
    fill(state, 1, 2)
    assert open_windows(state, 2).tolist() == [True]
    assert span(state) == (3, 4)
    assert int(state.opened) == 1
    assert int(state.step) == 0


def test_a_window_with_masks_stays_open():
    state = state_of([1, MASK, MASK, MASK], 2)
    fill(state, 1)
    assert open_windows(state, 2).tolist() == [False]
    assert span(state) == (1, 3)


def test_blocks_without_masks_are_skipped():
    state = state_of([MASK, 1, 1, 1, 1, MASK], 2)
    assert int(state.num_windows) == 2
    fill(state, 0)
    open_windows(state, 2)
    assert span(state) == (4, 6)


def test_a_filled_row_opens_nothing():
    state = state_of([1, MASK], None)
    fill(state, 1)
    assert open_windows(state, None).tolist() == [False]


def test_the_window_marks_the_open_positions_and_follows_when_it_moves():
    state = state_of([1, MASK, MASK, MASK], 2)
    assert state.window.tolist() == [[False, True, True, False]]
    assert state.window is state.window  # made once
    state.masked[:, 1:3] = False
    open_windows(state, 2)
    assert state.window.tolist() == [[False, False, False, True]]
    state = state.taken(torch.tensor([0, 0]))
    assert state.window.tolist() == [[False, False, False, True]] * 2


@pytest.mark.parametrize(("block", "later"), [(None, 0), (2, 2), (3, 1), (1, 5)])
def test_later_windows_are_counted(block, later):
    assert windows_after(state_of([1] + [MASK] * 6, block), block).tolist() == [later]


def test_later_windows_without_masks_do_not_count():
    assert windows_after(state_of([MASK, 1, 1, 1, 1, MASK], 2), 2).tolist() == [1]


@pytest.mark.parametrize(
    ("block", "steps", "wanted"), [(None, 4, 4), (2, 4, 2), (2, 5, 2), (3, 3, 2), (2, 3, 1)]
)
def test_a_window_gets_its_fair_share_of_the_forwards(block, steps, wanted):
    state = state_of([1] + [MASK] * 6, block)
    assert forwards_here(state, block, steps).tolist() == [wanted]


def test_the_present_forward_is_always_allowed():
    state = state_of([1] + [MASK] * 6)
    state.nfe += 9
    assert forwards_here(state, None, 4).tolist() == [1]


def test_a_block_causal_model_counts_its_blocks_from_the_canvas_start():
    state = State.of([torch.tensor([1, 1, 1, *[MASK] * 5])], MASK, 4, 0, from_zero=True)
    open_windows(state, 4)
    assert span(state) == (3, 4)
    assert int(state.num_windows) == 2
    assert windows_after(state, 4).tolist() == [1]
    fill(state, 3)
    open_windows(state, 4)
    assert span(state) == (4, 8)
