"""Which position is meant, and one line where there is none."""

from __future__ import annotations

import pytest

from tests.trace.scripted import HOLE, RASH, SWINGS, trace_of
from unmask.trace import Trace
from unmask.trace.recording.codec import TraceError
from unmask.trace.story.locate import checked_position, checked_step, positions_of


@pytest.fixture(scope="module")
def trace():
    return trace_of("confidence | top(1)", RASH, SWINGS)


def test_a_position_outside_the_canvas_is_told_the_range(trace):
    with pytest.raises(TraceError, match="position 9 is outside the canvas \\(0-2\\); deco"):
        checked_position(trace, 9)
    with pytest.raises(TraceError, match="decoding wrote 1-2"):
        checked_position(trace, -1)


def test_a_position_of_the_prompt_was_given(trace):
    with pytest.raises(TraceError, match="position 0 is part of the prompt \\('the'\\)"):
        checked_position(trace, 0)


def test_a_trace_without_steps_has_nothing_to_say(trace):
    empty = Trace(trace.header, (), trace.words, None, "empty.trace")
    with pytest.raises(TraceError, match="cut off before its first step"):
        checked_position(empty, 1)


def test_steps_count_from_one(trace):
    assert checked_step(trace, 1) == 1
    with pytest.raises(TraceError, match="step 0 is not in trace; it has steps 1-2"):
        checked_step(trace, 0)


def test_a_word_is_found_where_it_ended(trace):
    assert positions_of(trace, "pens") == [1]
    assert positions_of(trace, " pens ") == [1]


def test_a_word_that_ended_twice_is_found_twice():
    same = trace_of("confidence | top(2)", RASH, canvas=[HOLE, 0, HOLE])
    same.words[3] = "cups"
    assert positions_of(same, "cups") == [0, 2]


def test_a_word_of_the_prompt_was_not_decoded(trace):
    with pytest.raises(TraceError, match="'the' is only in the prompt, at 0; decoding wrote 1-2"):
        positions_of(trace, "the")


def test_a_word_that_was_only_predicted_is_said_to_be(trace):
    with pytest.raises(TraceError, match="no position has the final token 'a'; it was predicted"):
        positions_of(trace, "a")


def test_a_word_that_never_was_is_unknown(trace):
    with pytest.raises(TraceError, match=r"no position has the final token 'dragon'$"):
        positions_of(trace, "dragon")
