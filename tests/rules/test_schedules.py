"""Timetables: LLaDA's even shares and Dream's timesteps."""

from __future__ import annotations

import pytest
import torch

from tests.helpers import at_step, hand_view, places, table
from unmask import RuleError, Scores
from unmask.rules.schedules import Origin, Static, Timesteps, even_share, steps_per_window


def counts(select, masks, windows=1):
    """How many positions a timetable takes in each step until none is left."""
    view = hand_view([0.5] * masks)
    windows = torch.tensor([windows])
    scores, taken, step = Scores.probability(view.confidence), [], 0
    while view.masked.any():
        chosen = select(at_step(view, step, num_windows=windows), scores)
        taken.append(int(chosen.sum()))
        view, step = view.among(view.masked & ~chosen), step + 1
    return taken


@pytest.mark.parametrize(
    ("masks", "steps", "wanted"),
    [
        (8, 4, [2, 2, 2, 2]),
        (10, 4, [3, 3, 2, 2]),
        (7, 3, [3, 2, 2]),
        (5, 5, [1] * 5),
        (3, 8, [1, 1, 1]),
        (6, 1, [6]),
    ],
)
def test_llada_shares_evenly_and_gives_the_first_steps_the_remainder(masks, steps, wanted):
    assert counts(Static(steps), masks) == wanted


def test_the_steps_are_shared_by_the_blocks():
    assert counts(Static(8), 8, windows=2) == [2, 2, 2, 2]
    assert counts(Static(9), 8, windows=2) == [2, 2, 2, 2]


def test_more_blocks_than_steps_leave_one_step_each():
    progress = at_step(hand_view([0.5] * 4), 0, num_windows=torch.tensor([5])).progress
    assert steps_per_window(3, progress).tolist() == [1]
    assert counts(Static(3), 4, windows=5) == [4]


def test_past_the_last_step_everything_is_taken():
    progress = at_step(hand_view([0.5] * 6), 3).progress
    assert even_share(3, progress).tolist() == [6]


def test_a_timetable_takes_the_best():
    view = hand_view([0.1, 0.9, 0.2, 0.8])
    assert places(Static(2)(view, Scores.probability(view.confidence))) == [1, 3]
    assert places(Timesteps(2, eps=0.0)(view, Scores.probability(view.confidence))) == [1, 3]


@pytest.mark.parametrize("length", [8, 16, 64])
def test_dream_with_as_many_steps_as_masks_begins_with_nothing_and_ends_with_two(length):
    assert counts(Timesteps(length), length) == [0, *[1] * (length - 2), 2]


def test_dream_takes_the_share_of_what_is_left():
    # t = 1, .75025, .5005, .25075, .001: shares .24975, .3329, .4990, .996
    assert counts(Timesteps(4), 100) == [24, 25, 25, 26]


@pytest.mark.parametrize(("masks", "wanted"), [(2, [0, 0, 2]), (6, [2, 1, 3]), (9, [3, 2, 4])])
def test_dream_counts_in_single_precision(masks, wanted):
    assert counts(Timesteps(3, eps=0.0), masks) == wanted


def test_dream_takes_all_in_the_last_step():
    assert counts(Timesteps(1), 5) == [5]
    assert sum(counts(Timesteps(3), 7)) == 7


def test_origin_commits_each_mask_with_the_share_as_its_probability():
    draws = table([0.1, 0.3, 0.2, 0.9])
    view = hand_view([0.5] * 4, draws=draws)
    scores = Scores.probability(view.confidence)
    assert places(Origin(4)(view, scores)) == [0, 2]  # below .24975
    assert places(Origin(4)(at_step(view, 1), scores)) == [0, 1, 2]  # below .3329
    assert places(Origin(4)(at_step(view, 3), scores)) == [0, 1, 2, 3]


def test_origin_asks_for_random_numbers():
    assert Origin().needs.draws
    assert not Timesteps().needs.draws


def test_a_timetable_is_not_adaptive_and_only_dream_waits():
    assert not Static().adaptive
    assert not getattr(Static(), "waits", False)
    assert Timesteps().waits
    assert Origin().waits


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Static(0), "static: steps must be >= 1, got 0"),
        (lambda: Timesteps(0), "timesteps: steps must be >= 1, got 0"),
        (lambda: Timesteps(4, eps=1.0), r"timesteps: eps must be in \[0, 1\), got 1.0"),
        (lambda: Origin(4, eps=-0.1), r"origin: eps must be in \[0, 1\), got -0.1"),
    ],
)
def test_a_timetable_checks_its_knobs(make, message):
    with pytest.raises(RuleError, match=message):
        make()
