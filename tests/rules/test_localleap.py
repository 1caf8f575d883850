"""LocalLeap, by hand."""

import pytest

from tests.helpers import bits, hand_view, places
from unmask import Rule
from unmask.errors import RuleError


def _chosen(confidence, text, **fields):
    return places(Rule.parse(f"confidence | {text}")(hand_view(confidence, **fields)).chosen)


def test_the_lower_threshold_holds_near_an_anchor_on_both_sides():
    sure = [0.8, 0.8, 0.8, 0.9, 0.8, 0.8, 0.8]
    assert _chosen(sure, "localleap(0.9, low=0.75, r=1)") == [2, 3, 4]
    assert _chosen(sure, "localleap(0.9, low=0.75, r=2)") == [1, 2, 3, 4, 5]
    assert _chosen(sure, "localleap(0.9, low=0.85, r=2)") == [3]
    assert _chosen(sure, "localleap(0.9, low=0.75, r=0)") == [3]


def test_a_score_equal_to_a_threshold_passes():
    assert _chosen([0.75, 0.9, 0.5], "localleap(0.9, low=0.75, r=4)") == [0, 1]


def test_a_fixed_token_is_no_anchor():
    masked = bits([1, 0, 1])
    assert _chosen([0.8, 0.99, 0.7], "localleap(0.9, low=0.5, r=4)", masked=masked) == [0]


def test_without_an_anchor_only_the_best_goes():
    assert _chosen([0.8, 0.85, 0.8], "localleap(0.9, low=0.75, r=4)") == [1]


def test_wrong_knobs_are_refused():
    for text, message in (
        ("localleap(0.5, low=0.6)", "low must be <= tau"),
        ("localleap(r=-1)", "r"),
    ):
        with pytest.raises(RuleError, match=message):
            Rule.parse(f"confidence | {text}")
