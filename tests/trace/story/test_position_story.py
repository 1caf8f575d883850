"""The story of a position: hand-made runs whose right sentences are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.trace.scripted import HOLE, RASH, SETTLED, SWINGS, said, trace_of
from unmask import Sampling
from unmask.text.terminal import Painter, visible_width
from unmask.trace import Trace
from unmask.trace.story.position_story import tell_moment, tell_position


def story(trace, position):
    return " ".join(tell_position(trace, position).record["told"])


def test_a_threshold_that_is_passed_is_named_with_the_score():
    trace = trace_of("confidence | threshold(0.9)", RASH, SWINGS)
    told = story(trace, 1)
    assert told.startswith("Position 1 got 'pens' at step 2 of 2, as the only commitment")
    assert "Its prediction changed once: step 1 'a' (0.60), step 2 'pens' (0.93)." in told
    assert (
        "Not committed at step 1: under threshold(0.9) its score, 0.6, was not above 0.9." in told
    )
    assert "Committed at step 2: under threshold(0.9) its score, 0.93, was above 0.9." in told


def test_the_best_one_goes_where_none_passes_the_threshold():
    trace = trace_of("confidence | threshold(0.99)", RASH, SWINGS)
    assert (
        "no candidate was above 0.99 (the best had 0.95), so the best one was committed"
        in story(trace, 2)
    )
    assert "so only the best one was committed, and this was 2nd" in story(trace, 1)


def test_the_entropy_budget_says_what_one_more_would_have_cost():
    trace = trace_of("confidence | eb(0.1)", RASH, SWINGS)
    told, gauge = story(trace, 1), trace.moments[0].gauge
    assert f"would add up to {gauge['next']:.3g}, over 0.1 nats" in told
    assert "eb(0.1) committed only the best one, and this was 2nd; with one more" in told
    assert "always commits the best one, and this was it; no other candidate was left" in told


def test_without_history_swd_lets_only_the_best_go():
    trace = trace_of("confidence | swd(5, start=single) | threshold(0.5)", RASH, SWINGS, SETTLED)
    assert "the first step has no earlier one to compare with" in story(trace, 1)
    assert "Committed at step 1: the first step" in story(trace, 2)


def test_the_first_step_is_compared_with_the_uniform_distribution_and_the_story_says_so():
    trace = trace_of("confidence | swd(5) | threshold(0.5)", RASH, SWINGS, SETTLED)
    first = trace.moments[0]
    assert np.isfinite(first.instability).all()
    factors = np.exp(first.score - first.base)
    np.testing.assert_allclose(factors, np.exp(-5 * first.instability), rtol=0.05)
    assert "In the first step, D is measured against the uniform distribution." in (
        tell_position(trace, 1).note
    )


def test_what_swd_held_back_is_told_with_d_score_and_rank():
    trace = trace_of(
        "confidence | swd(5, start=single) | threshold(0.5)",
        RASH,
        SWINGS,
        SETTLED,
        canvas=[HOLE] * 3,
    )
    first = trace.moments[0]
    assert first.unweighted == (0, 1, 2)
    assert first.committed == {2: 2}
    told = story(trace, 1)
    assert "Without SWD it would have been committed at step 1 as 'a' (confidence 0.60)" in told
    assert "it had no earlier distribution to compare with, so SWD does not allow it" in told
    assert "lam = 0 would have committed it at step 2 ('pens') too." in told
    assert "By step 2 the prediction had become 'pens', and that is what was committed." in told
    moment = tell_moment(trace, 1, 2)
    moved, score = trace.moments[1].instability[1], trace.moments[1].value[1]
    assert f"D = {moved:.3g} lowered its score from 0.93 to {score:.3g}" in " ".join(moment.after)
    assert "lam = 0 means the same step of this run" in moment.note


def test_where_swd_changed_nothing_the_story_says_so():
    trace = trace_of("confidence | swd(5, start=single) | top(1)", RASH, RASH, RASH)
    for position in (1, 2):
        assert "SWD changed nothing here" in story(trace, position)


def test_a_rule_without_swd_has_a_d_that_nobody_looked_at():
    told = story(trace_of("confidence | top(1)", RASH, SWINGS), 1)
    assert "The rule has no SWD. D = KL(previous || current) was" in told
    assert "the rule ignores it" in told


def test_a_rule_that_looks_at_d_by_itself_is_named():
    told = story(trace_of("confidence | budget(0.1)", RASH, SWINGS), 1)
    assert "only budget(0.1) read it" in told


def test_a_budget_says_what_fits_what_was_spent_and_what_would_be_too_much():
    canvas = [HOLE] * 4
    calm = said(("the", 0.9), ("a", 0.6), ("cups", 0.8), ("pens", 0.7))
    moved = said(("the", 0.9), ("pens", 0.93), ("cups", 0.8), ("pens", 0.71))
    trace = trace_of("confidence | budget(0.1)", calm, moved, moved, canvas=canvas)
    assert [sorted(moment.committed) for moment in trace.moments] == [[0], [2, 3], [1]]
    first = "under budget(0.1) no candidate fits, so only the best one was committed, and this was"
    assert f"Committed at step 1: {first} it." in story(trace, 0)
    assert f"Not committed at step 1: {first} 2nd." in story(trace, 2)
    spent = trace.moments[1].gauge["spent"]
    together = f"D adds up to {spent:.3g} of 0.1 nats"
    assert f"Committed at step 2: under budget(0.1) it is one of the 2 committed; {together}." in (
        story(trace, 3)
    )
    own = trace.moments[1].instability[0]
    assert f"with its own D, {own:.3g}, that would be too much" in story(trace, 1)
    assert "only it was committed; D adds up to 0 of 0.1 nats" in story(trace, 1)


def test_a_limit_that_forced_it_is_named():
    trace = trace_of("confidence | threshold(0.9) | floor(2)", RASH)
    assert "floor(2) required more than the 1 that threshold(0.9) chose; it was 2nd" in (
        story(trace, 1)
    )


def test_a_limit_that_kept_it_back_is_named():
    trace = trace_of("confidence | threshold(0.5) | cap(1)", RASH, SWINGS)
    assert "threshold(0.5) chose 2 positions with this one, but cap(1) removed it" in story(
        trace, 1
    )


def test_a_budget_of_steps_that_forced_it_is_named():
    trace = trace_of("confidence | top(1)", RASH, SWINGS, steps=1)
    assert "Committed at step 1: --steps 1 required more than the 1 that top(1) chose" in story(
        trace, 1
    )


def test_what_a_budget_of_steps_forces_is_forced_at_lam_0_too():
    trace = trace_of("confidence | swd(5, start=single) | top(1)", RASH, RASH, steps=1)
    assert trace.moments[0].unweighted == (1, 2)
    assert "SWD changed nothing here" in story(trace, 1)


def test_a_block_that_was_not_open_is_named():
    trace = trace_of("confidence | top(1)", RASH, SWINGS, canvas=[HOLE] * 3, block=1)
    assert "Not committed at steps 1-2: its block was not open yet." in story(trace, 2)


def test_a_position_that_a_cache_left_as_it_was_is_told():
    whole = trace_of("confidence | top(1)", RASH, SWINGS)
    first = whole.moments[0]
    rows = ("positions", "token", "rank", "base_rank", "chosen", "ready")
    only = replace(first, **{name: getattr(first, name)[1:] for name in rows})
    header = {**whole.header, "model": {**whole.header["model"], "cache": "delayed"}}
    told = story(Trace(header, (only, *whole.moments[1:]), whole.words, whole.end), 1)
    assert "Not committed at step 1: the cache (delayed) did not recompute it" in told


def test_what_the_eos_policy_wrote_is_no_commitment():
    ends = said(("the", 0.9), ("<end>", 0.99), ("cups", 0.5))
    told = story(trace_of("confidence | top(1)", ends, eos="stop"), 2)
    assert "got '<end>' at step 1 of 1: the EOS policy 'stop' wrote it, not the rule." in told
    assert "everything before the first end of text was fixed" in told


def test_positions_behind_the_end_are_not_decided_on():
    ends = said(("the", 0.9), ("a", 0.5), ("<end>", 0.99), ("cups", 0.5))
    told = story(trace_of("confidence | top(1)", ends, eos="stop"), 3)
    assert "Not committed at step" in told
    assert "At step 2 everything before" in told


def test_an_end_of_text_that_is_ranked_last_is_told():
    ends = said(("the", 0.9), ("<end>", 0.99), ("cups", 0.5))
    told = story(trace_of("confidence | top(1)", ends, ends, eos="last"), 1)
    assert "Not committed at step 1: eos=last ranks an end of text last" in told


def test_a_commitment_that_was_taken_back_and_made_again_is_told():
    regret = said(("the", 0.9), ("a", 0.6), ("pens", 0.8))
    trace = trace_of("confidence | top(1) | revoke(0.1)", RASH, regret)
    assert [moment.revoked for moment in trace.moments] == [(), (2,), ()]
    told = story(trace, 2)
    assert told.startswith("Position 2 got 'pens' at step 3 of 3")
    assert "It had been committed as 'cups' at step 1 and was taken back at step 2" in told
    assert "had moved by more than 0.1 nats" in told
    assert told.count("Committed at step") == 2


def test_a_drawn_token_names_the_model_s_own_choice():
    even = said(("the", 0.9), ("a", 0.26), ("cups", 0.26))
    for seed in range(20):
        trace = trace_of("confidence | top(2)", even, seed=seed, sampling=Sampling(1.0))
        if trace.canvas_after(-1)[1] != 0:
            assert "drawn at temperature 1: the model's own first choice" in story(trace, 1)
            return
    raise AssertionError("no seed drew another token")


def test_a_run_that_was_cut_off_tells_what_is_known_so_far():
    whole = trace_of("confidence | top(1)", RASH, SWINGS)
    cut = Trace(whole.header, whole.moments[:1], whole.words, None, "cut.trace")
    assert story(cut, 1).startswith("Position 1 is still a mask: the trace stops after 1 step.")
    assert story(cut, 2).startswith(
        "Position 2 got 'cups' at step 1 (the trace stops after step 1)"
    )


def test_the_steps_of_a_branch_are_its_run_s():
    whole = trace_of("confidence | swd(5, start=single) | top(1)", RASH, SWINGS)
    header = {**whole.header, "branch": {"step": 1}}
    told = story(Trace(header, whole.moments, whole.words, whole.end), 2)
    assert "Committed at step 1: the branch repeats this step of the original run." in told


def test_a_selection_of_one_s_own_gets_what_is_always_true():
    import unmask

    @unmask.selection
    def leftmost(view, scores):
        """The leftmost mask."""
        return view.masked & (view.masked.cumsum(-1) == 1)

    told = story(trace_of("confidence | leftmost", RASH, SWINGS), 2)
    assert "leftmost took 1 of 2 candidates, it not among them; by score it was 1st" in told


@pytest.mark.parametrize("colour", [False, True])
def test_no_line_is_longer_than_the_terminal(colour):
    trace = trace_of("confidence | swd(5) | eb(0.1)", RASH, SWINGS, SETTLED)
    for width in (40, 80):
        lines = list(tell_position(trace, 1).lines(Painter(colour), width))
        assert max(visible_width(line) for line in lines) <= width
        assert any("\x1b[" in line for line in lines) == colour


def test_a_token_is_never_torn_by_a_line_break():
    trace = trace_of("confidence | top(1)", RASH, SWINGS)
    trace.words[1] = " p e n s"
    for width in range(30, 80):
        lines = list(tell_position(trace, 1).lines(Painter(False), width))
        whole = "\n".join(lines)
        assert whole.count("' p e n s'") == whole.count(" p e n s")
