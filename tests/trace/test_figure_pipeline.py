"""The paper's Figure 2: it draws the numbers of the trace, and who wins with and without SWD."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from tests.trace.runs import anything, traced
from tests.trace.scripted import HOLE, RASH, SETTLED, SWINGS, said, trace_of
from unmask.errors import UnmaskError
from unmask.trace import Trace
from unmask.trace.figure_pipeline import MOST, StepPipeline, pipeline_figure, telling_step
from unmask.trace.recording.codec import TraceError
from unmask.trace.story.format import cell

SWD, PLAIN = "confidence | swd(5) | eb(0.1)", "confidence | eb(0.1)"


def svg(tmp_path, pipeline):
    file = tmp_path / "figure.svg"
    pipeline_figure(pipeline, file)
    return file.read_text()


def texts(drawing):
    """The texts of an SVG in the order of its elements."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", drawing)


def test_the_numbers_drawn_are_those_of_the_trace(tmp_path):
    trace = trace_of("confidence | swd(5) | top(1)", RASH, SWINGS, SETTLED, canvas=[HOLE] * 3)
    pipeline, moment = StepPipeline(trace, 2), trace.moments[1]
    assert len(pipeline.rows) == 2
    score, moved, weight, modulated = (stage.values for stage in pipeline.stages)
    np.testing.assert_allclose(score, np.exp(moment.base), rtol=1e-6)
    assert np.array_equal(moved, moment.instability)
    assert np.array_equal(weight, np.exp(-5 * moment.instability))
    assert np.array_equal(modulated, moment.value)
    written = texts(svg(tmp_path, pipeline))
    for values in (score, weight, modulated):
        assert set(map(cell, values)) <= set(written)


@pytest.mark.parametrize("start", ["single", "skip", "uniform"])
def test_a_modulated_score_is_the_score_times_the_weight_for_every_start(start):
    trace = trace_of(f"confidence | swd(2, start={start}) | top(1)", RASH, SWINGS, SETTLED)
    for step in range(1, len(trace.moments) + 1):
        score, moved, weight, modulated = (s.values for s in StepPipeline(trace, step).stages)
        assert np.allclose(np.multiply(score, weight), modulated, rtol=0.01)
        assert any(map(math.isnan, moved)) == (step == 1 and start != "uniform")


def test_a_negative_score_is_lowered_by_lam_times_d():
    pipeline = StepPipeline(trace_of("entropy | swd(2) | eb(0.1)", RASH, SWINGS, SETTLED), 2)
    score, moved, _, modulated = (stage.values for stage in pipeline.stages)
    assert np.allclose(np.subtract(score, np.multiply(2, moved)), modulated, rtol=0.01)
    assert pipeline.stages[-1].title.endswith("S − 2 D")


def test_a_confident_and_unstable_position_loses_to_a_stable_one(tmp_path):
    before = said(("the", 0.9), ("a", 0.9), ("cups", 0.8))
    after = said(("the", 0.9), ("pens", 0.97), ("cups", 0.8))
    trace = trace_of("confidence | swd(5, start=skip) | top(1)", before, after, after, after,
                     canvas=[HOLE] * 3)  # fmt: skip
    step = telling_step(trace)
    pipeline = StepPipeline.of(trace)
    assert pipeline.step == step == 2
    plain, _, _, with_swd = pipeline.stages
    assert (plain.wins, with_swd.wins) == ([True, False], [False, True])
    assert pipeline.caption[1].startswith("Committed only without SWD: 1 'pens'. Committed only w")
    for words in ("lam 0 commits", "SWD commits", "1 → 2", "2 → 1"):
        assert words in texts(svg(tmp_path, pipeline))


def test_the_default_step_is_one_in_which_swd_changes_the_choice():
    for seed in range(6):
        model, request = anything("confidence | swd(5) | eb(0.5)", seed)
        trace = Trace.of(traced(model, request)[0])
        changed = [
            step
            for step, moment in enumerate(trace.moments, 1)
            if set(moment.committed) != set(moment.unweighted)
        ]
        assert telling_step(trace) in (changed or [None])


def test_where_swd_changes_nothing_the_second_step_is_drawn_and_says_so(tmp_path):
    same = trace_of("confidence | swd(5, start=skip) | top(1)", SETTLED, SETTLED, SETTLED)
    assert telling_step(same) is None
    assert StepPipeline.of(same).step == 2
    assert "SWD changes nothing here." in svg(tmp_path, StepPipeline.of(same))


def test_the_same_trace_gives_the_same_bytes(tmp_path):
    pipeline = StepPipeline.of(trace_of(SWD, RASH, SWINGS, SETTLED))
    for kind in ("svg", "pdf"):
        files = [tmp_path / f"{name}.{kind}" for name in ("one", "two")]
        for file in files:
            pipeline_figure(pipeline, file)
        assert files[0].read_bytes() == files[1].read_bytes()


def test_a_wide_window_shows_the_best_of_each_outcome_and_says_how_many_are_left_out(tmp_path):
    shares = np.random.default_rng(0).uniform(0.3, 0.9, (4, 60))
    forwards = [said(*[("pens", share) for share in row]) for row in shares]
    rule = "confidence | swd(1, start=skip) | threshold(0.85)"
    pipeline = StepPipeline.of(trace_of(rule, *forwards, *forwards * 9, canvas=[HOLE] * 60))
    assert len(pipeline.rows) == MOST < len(pipeline.looks)
    assert f"{MOST} of {len(pipeline.looks)} candidates are drawn" in " ".join(pipeline.caption)
    outcomes = {(look.unweighted, look.chosen) for look in pipeline.looks}
    assert {(look.unweighted, look.chosen) for look in pipeline.rows} == outcomes
    assert "tau = 0.85" in texts(svg(tmp_path, pipeline))


def test_a_step_that_a_branch_repeats_says_so(tmp_path):
    trace = trace_of(SWD, RASH, SWINGS, SETTLED)
    branch = Trace({**trace.header, "branch": {"step": 1}}, trace.moments, trace.words, trace.end)
    _, words = StepPipeline(branch, 1).caption
    assert words.startswith("The branch repeats this step of the original run: ")
    assert "SWD" not in words
    assert not any(StepPipeline(branch, 1).stages[0].wins)
    assert telling_step(branch) != 1


def test_ends_of_text_that_eos_last_puts_last_say_so(tmp_path):
    ends = said(("the", 0.9), ("<end>", 0.99), ("cups", 0.7))
    trace = trace_of("confidence | swd(5) | top(1)", ends, ends, ends, eos="last")
    assert "ranked last" in texts(svg(tmp_path, StepPipeline(trace, 1)))


def test_words_that_the_font_lacks_are_kept_without_a_warning(tmp_path):
    trace = trace_of(SWD, RASH, SWINGS, SETTLED)
    chinese = Trace(trace.header, trace.moments, {**trace.words, 2: "你好"}, trace.end)
    assert "'你好'" in svg(tmp_path, StepPipeline(chinese, 2))  # a warning is an error in tests
    pipeline_figure(StepPipeline(chinese, 2), tmp_path / "figure.png")


def test_what_cannot_be_drawn_is_one_line(tmp_path):
    trace = trace_of(SWD, RASH, SWINGS, SETTLED)
    with pytest.raises(TraceError, match=r"has no SWD in its rule \(confidence | eb\(0\.1\)\)"):
        StepPipeline.of(trace_of(PLAIN, RASH, SWINGS))
    with pytest.raises(TraceError, match="step 0 is not in trace; it has steps 1-"):
        StepPipeline.of(trace, 0)
    with pytest.raises(TraceError, match="step 99 is not in trace"):
        StepPipeline.of(trace, 99)
    with pytest.raises(TraceError, match="cut off before its first step"):
        StepPipeline.of(Trace(trace.header, (), {}, None))
    with pytest.raises(UnmaskError, match=r"a figure must end in \.svg, \.png, \.pdf"):
        pipeline_figure(StepPipeline.of(trace), tmp_path / "figure.gif")


@pytest.mark.long
def test_every_step_of_any_rule_with_swd_can_be_drawn(tmp_path):
    rules = [
        "entropy | swd(2, start=uniform, form=signed) | eb(0.5)",
        "margin | swd(30, start=uniform) | top(2) | cap(1)",
        "confidence | swd(1) | threshold(0.4) | revoke(0.2, times=2)",
        "credit(0.65) | confidence | swd(5, kl=cur_prev) | klass(0.5)",
        "confidence | pc(0.25) | swd(1) | eb(0.1)",
    ]
    for number, text in enumerate(rules):
        model, request = anything(text, 3)
        trace = Trace.of(traced(model, request)[0])
        assert svg(tmp_path, StepPipeline(trace, len(trace.moments) if number % 2 else 1))
