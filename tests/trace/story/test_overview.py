"""The story of a run and of a step."""

from __future__ import annotations

from tests.trace.scripted import HOLE, RASH, SETTLED, SWINGS, trace_of
from unmask.text.terminal import Painter
from unmask.trace import Trace
from unmask.trace.story.overview import tell_run
from unmask.trace.story.step_story import tell_step
from unmask.trace.story.story import folded

SWD = "confidence | swd(5, start=single) | threshold(0.5)"


def lines(telling):
    return "\n".join(telling.lines(Painter(False), 80))


def test_a_run_is_a_table_of_its_steps():
    told = lines(tell_run(trace_of("confidence | threshold(0.9)", RASH, SWINGS)))
    assert told.startswith("confidence | threshold(0.9): 2 positions in 2 steps.")
    assert "     1     2  best 0.95 passing 1  2 'cups'" in told
    assert "     2     1  best 0.93 passing 1  1 'pens'" in told


def test_a_run_names_what_lam_0_would_have_done_and_who_is_worth_asking_about():
    told = lines(tell_run(trace_of(SWD, RASH, SWINGS, SETTLED, canvas=[HOLE] * 3)))
    assert "+0 +1" in told
    assert "SWD held it back longest: lam = 0 would have committed" in told
    assert "- 0, 1: the first difference from lam = 0, at step 1." in told
    assert "committed with the lowest confidence" in told


def test_a_run_that_swd_left_alone_says_so():
    told = lines(tell_run(trace_of("confidence | swd(5, start=single) | top(1)", RASH, RASH)))
    assert "SWD changed nothing: lam = 0 would have committed the same in every step." in told


def test_a_run_that_was_cut_off_says_how_much_is_left():
    whole = trace_of("confidence | top(1)", RASH, SWINGS)
    cut = Trace(whole.header, whole.moments[:1], whole.words, None)
    assert "the trace stops after 1 step, with 1 mask left." in tell_run(cut).head
    assert tell_run(Trace(whole.header, (), whole.words, None)).head.endswith("with 2 masks left.")


def test_a_step_has_its_candidates_in_order_and_says_where_the_rule_cut_them():
    told = lines(tell_step(trace_of("confidence | threshold(0.9)", RASH, SWINGS), 1))
    assert told.startswith("Step 1 of 2: positions 1-2 were open, 1 of 2 candidates committed.")
    assert told.index("'cups'") < told.index("'a'")
    assert "Position 2 was committed: under threshold(0.9) its score, 0.95, was above 0.9." in told
    assert (
        "Position 1 was not committed: under threshold(0.9) its score, 0.6, was not above" in told
    )


def test_long_tables_keep_the_first_the_wanted_and_the_last():
    assert folded([False] * 10) == list(range(10))
    kept = folded([i == 20 for i in range(50)], tail=3)
    assert kept == [0, None, 20, None, 47, 48, 49]
