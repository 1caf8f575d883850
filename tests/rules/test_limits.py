"""Limits: at least, at most, the first of a block."""

from __future__ import annotations

import pytest
import torch

from tests.helpers import at_step, bits, hand_view, outcome, places, random_lookup
from unmask import RuleError, decode
from unmask.rules.limits import Cap, Floor, Lead
from unmask.rules.scores import confidence

VIEW = hand_view([0.4, 0.9, 0.5, 0.6, 0.7, 0.8])


def limited(limit, chosen, view=VIEW):
    return places(limit(view, confidence(view), bits(chosen)))


def test_a_floor_adds_the_best_to_what_was_chosen():
    assert limited(Floor(2), [1, 0, 0, 0, 0, 0]) == [0, 1, 5]


def test_a_floor_below_what_was_chosen_changes_nothing():
    assert limited(Floor(1), [0, 1, 0, 0, 1, 1]) == [1, 4, 5]


def test_a_floor_with_steps_is_the_even_share():
    assert limited(Floor(1, steps=2), [0, 1, 0, 0, 0, 0]) == [1, 4, 5]


def test_a_cap_keeps_the_best_of_what_was_chosen():
    assert limited(Cap(2), [1, 0, 1, 1, 1, 0]) == [3, 4]


def test_a_cap_above_what_was_chosen_changes_nothing():
    assert limited(Cap(4), [1, 0, 1, 0, 0, 0]) == [0, 2]


def test_a_cap_with_steps_allows_an_even_share():
    assert limited(Cap(1, steps=3), [1, 1, 1, 1, 1, 1]) == [1, 5]


def test_a_cap_with_steps_allows_what_earlier_steps_saved():
    # 6 masks in 3 steps: after one step with one commit, 4 - 1 = 3 are allowed
    view = at_step(VIEW.among(bits([1, 0, 1, 1, 1, 1])), 1)
    assert limited(Cap(1, steps=3), [1, 0, 1, 1, 1, 1], view) == [3, 4, 5]


def test_a_cap_with_steps_allows_all_in_the_last_step():
    assert limited(Cap(1, steps=3), [1] * 6, at_step(VIEW, 2)) == [0, 1, 2, 3, 4, 5]


def test_a_cap_with_steps_allows_at_least_one():
    view = at_step(VIEW.among(bits([0, 0, 0, 1, 1, 1])), 0)  # more were taken than the share
    assert limited(Cap(1, steps=3), [0, 0, 0, 1, 1, 1], view) == [5]


def test_a_cap_shares_its_steps_among_the_blocks():
    view = at_step(VIEW, 0, num_windows=torch.tensor([2]))
    assert len(limited(Cap(1, steps=4), [1] * 6, view)) == 3


def test_limits_apply_in_the_order_they_are_written():
    model = random_lookup(1)
    both = decode(model, [1], "confidence | eb(9) | floor(3) | cap(2)", length=8)
    assert both.nfe == 4


def test_a_cap_of_one_is_top_one():
    for seed in range(3):
        model = random_lookup(seed)
        capped = decode(model, [1], "confidence | threshold(0.1) | cap(1)", length=8)
        assert outcome(capped) == outcome(decode(model, [1], "confidence | top(1)", length=8))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Floor(0), "floor: k must be >= 1, got 0"),
        (lambda: Floor(steps=-1), "floor: steps must be >= 0, got -1"),
        (lambda: Cap(0), "cap: k must be >= 1, got 0"),
        (lambda: Cap(steps=-1), "cap: steps must be >= 0, got -1"),
    ],
)
def test_a_limit_checks_its_knobs(make, message):
    with pytest.raises(RuleError, match=message):
        make()


def test_lead_takes_the_leftmost_mask_alone_in_the_first_step_of_a_block():
    view = VIEW.among(bits([0, 1, 1, 1, 1, 1]))
    assert limited(Lead(), [0, 0, 0, 0, 1, 1], view) == [1]
    assert limited(Lead(), [0, 0, 0, 0, 0, 0], view) == [1]  # also where a timetable waits


def test_lead_leaves_later_steps_alone():
    assert limited(Lead(), [0, 0, 0, 0, 1, 1], at_step(VIEW, 1)) == [4, 5]


def test_lead_writes_the_first_position_of_every_block_first():
    result = decode(
        random_lookup(3), [1, 2], "confidence | threshold(0.5) | lead", length=9, block=3
    )
    for start in (2, 5, 8):
        assert int(result.commit_step[start]) == int(result.commit_step[start : start + 3].min())
        assert (result.commit_step[start + 1 : start + 3] > result.commit_step[start]).all()
