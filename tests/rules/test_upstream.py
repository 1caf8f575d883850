"""RPD's cumulative-entropy gate, by hand."""

import pytest

from tests.helpers import bits, hand_view, places, table
from unmask import Rule
from unmask.errors import RuleError

ENTROPY = table([1.0, 0.1, 2.0, 0.2, 0.1])


def _chosen(confidence, rule, **fields):
    return places(Rule.parse(rule)(hand_view(confidence, entropy=ENTROPY, **fields)).chosen)


def test_a_position_is_kept_while_the_masks_on_its_left_that_stay_have_little_entropy():
    sure = [0.1, 0.95, 0.1, 0.95, 0.95]
    assert _chosen(sure, "confidence | threshold(0.9) | upstream(3)") == [1, 3, 4]
    assert _chosen(sure, "confidence | threshold(0.9) | upstream(2.9)") == [1]


def test_kept_positions_add_nothing():
    sure = [0.95, 0.1, 0.95, 0.1, 0.95]  # 1.0 and 2.0 nats are kept, 0.1 and 0.2 stay
    assert _chosen(sure, "confidence | threshold(0.9) | upstream(0.31)") == [0, 2, 4]
    assert _chosen(sure, "confidence | threshold(0.9) | upstream(0.2)") == [0, 2]


def test_fixed_tokens_add_nothing():
    sure, masked = [0.1, 0.1, 0.1, 0.1, 0.95], bits([0, 1, 0, 1, 1])
    assert _chosen(sure, "confidence | threshold(0.9) | upstream(0.31)", masked=masked) == [4]
    assert _chosen(
        sure, "confidence | threshold(0.9) | upstream(0.2, window=2)", masked=masked
    ) == [1]


def test_if_nothing_is_kept_the_best_of_the_window_goes():
    sure = [0.1, 0.2, 0.3, 0.4, 0.95]
    assert _chosen(sure, "confidence | threshold(0.9) | upstream(1)") == [4]
    assert _chosen(sure, "confidence | threshold(0.9) | upstream(1, window=3)") == [2]


def test_the_window_counts_masks_or_positions():
    sure, masked = [0.1, 0.2, 0.3, 0.4, 0.95], bits([1, 0, 1, 1, 1])
    for unit, place in (("masks", 3), ("positions", 2)):
        rule = f"confidence | threshold(0.9) | upstream(0, window=3, unit={unit})"
        assert _chosen(sure, rule, masked=masked) == [place]


def test_where_nothing_passes_the_best_of_the_window_goes_and_not_the_best_of_all():
    unsure = [0.1, 0.2, 0.3, 0.4, 0.5]
    assert _chosen(unsure, "confidence | threshold(0.9) | upstream(9)") == [4]
    assert _chosen(unsure, "confidence | threshold(0.9) | upstream(9, window=2)") == [1]


def test_the_first_step_of_a_single_start_takes_the_best_of_the_window():
    rule = "confidence | swd(1, start=single) | threshold(0.1) | upstream(9, window=2)"
    assert _chosen([0.2, 0.3, 0.4, 0.5, 0.9], rule, seen=bits([0] * 5)) == [1]


def test_it_follows_every_selection():
    sure = [0.1, 0.95, 0.1, 0.96, 0.97]
    assert _chosen(sure, "confidence | top(3)") == [1, 3, 4]
    assert _chosen(sure, "confidence | top(3) | upstream(2)") == [1]
    assert _chosen(sure, "confidence | eb(0.3) | upstream(2)") == [1]


def test_wrong_knobs_are_refused():
    for text, message in (
        ("upstream(-1)", "beta must be >= 0"),
        ("upstream(1, window=0)", "window"),
    ):
        with pytest.raises(RuleError, match=message):
            Rule.parse(f"confidence | top(1) | {text}")
