"""The frontier window, and what a candidates stage does to the rest of a rule."""

from dataclasses import dataclass

import pytest
import torch

from tests.helpers import at_step, bits, hand_view, places, random_lookup, table
from unmask import Rule, decode
from unmask.errors import RuleError
from unmask.rules.frontier import Frontier

MASKED = bits([0, 1, 1, 0, 1, 1, 1, 1])
VIEW = hand_view([0.1, 0.2, 0.3, 0.4, 0.5, 0.95, 0.97, 0.99], masked=MASKED)


def test_masks_are_counted_and_fixed_tokens_are_not():
    assert places(Frontier(3)(VIEW)) == [1, 2, 4]


def test_positions_are_counted_from_the_leftmost_mask():
    assert places(Frontier(3, unit="positions")(VIEW)) == [1, 2]
    assert places(Frontier(4, unit="positions")(VIEW)) == [1, 2, 4]


def test_most_also_limits_the_span_in_positions():
    assert places(Frontier(3, most=2)(VIEW)) == [1, 2]
    assert places(Frontier(2, most=8)(VIEW)) == [1, 2]


def test_the_selection_and_its_fallback_act_on_the_candidates():
    assert places(Rule.parse("confidence | threshold(0.9)")(VIEW).chosen) == [5, 6, 7]
    assert places(Rule.parse("confidence | frontier(4) | threshold(0.9)")(VIEW).chosen) == [5]
    assert places(Rule.parse("confidence | frontier(3) | threshold(0.9)")(VIEW).chosen) == [4]


def test_a_start_with_a_single_position_takes_the_best_candidate():
    view = hand_view([0.2, 0.3, 0.9], seen=bits([0, 0, 0]))
    rule = Rule.parse("confidence | swd(5, start=single) | frontier(2) | threshold(0.1)")
    assert places(rule(view).chosen) == [1]


def test_limits_act_on_the_candidates():
    assert places(Rule.parse("confidence | frontier(3) | top(1) | floor(9)")(VIEW).chosen) == [
        1,
        2,
        4,
    ]


def test_a_timetable_counts_the_masks_outside_the_window_too():
    view = at_step(hand_view([0.5] * 12), 0, num_windows=torch.tensor([1]))
    plain = Rule.parse("confidence | timesteps(3)")(view).chosen.sum()
    assert plain == Rule.parse("confidence | frontier(8) | timesteps(3)")(view).chosen.sum() == 3


def test_a_window_of_one_decodes_from_left_to_right():
    result = decode(random_lookup(1), [1, 2], "confidence | frontier(1) | eb(1)", length=8)
    assert result.commit_step.tolist()[2:] == list(range(8))


def test_the_history_covers_the_positions_outside_the_window():
    moved = table([0.0, 0.0, 5.0])
    view = hand_view([0.5, 0.6, 0.9], kl_prev_cur=moved)
    decision = Rule.parse("confidence | swd(1) | frontier(2) | top(3)")(view)
    assert decision.scores.value[0, 2] < 0.9 * 0.01
    assert places(decision.chosen) == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("frontier(0)", "frontier: w must be"),
        ("frontier(2, unit=positions, most=4)", "most=4 goes with unit=masks"),
        ("frontier(2, unit=words)", "must be one of masks, positions"),
    ],
)
def test_wrong_knobs_are_refused(text, message):
    with pytest.raises(RuleError, match=message):
        Rule.parse(f"confidence | {text} | top(1)")


def test_a_candidates_stage_stands_before_the_selection():
    with pytest.raises(RuleError, match="stands too late"):
        Rule.parse("confidence | top(1) | frontier(8)")


@dataclass(frozen=True)
class _Nothing:
    def __call__(self, view):
        return torch.zeros_like(view.masked)


@dataclass(frozen=True)
class _Numbers:
    def __call__(self, view):
        return view.confidence


@pytest.mark.parametrize(
    ("part", "message"),
    [(_Nothing(), "_Nothing left no candidate"), (_Numbers(), "_Numbers must return a bool")],
)
def test_a_stage_that_leaves_no_candidate_is_named(part, message):
    plain = Rule.parse("confidence | top(1)")
    rule = Rule(plain.score, plain.select, candidates=(part,))
    with pytest.raises(RuleError, match=message):
        rule(VIEW)
