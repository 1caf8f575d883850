"""The paper's Figure 1: drawn for any rule, the same bytes each time, nothing written over."""

from __future__ import annotations

import sys

import pytest

from tests.trace.runs import anything, traced
from tests.trace.scripted import RASH, SETTLED, SWINGS, said, trace_of
from unmask.errors import UnmaskError
from unmask.trace import Trace
from unmask.trace.figure import CLIP, PositionPanel, commitment_figure
from unmask.trace.recording.codec import TraceError
from unmask.trace.story.locate import written
from unmask.trace.story.timeline import Timeline

SWD, PLAIN = "confidence | swd(5, start=single) | eb(0.1)", "confidence | eb(0.1)"


def svg(tmp_path, traces, position=1):
    file = tmp_path / "figure.svg"
    commitment_figure(traces, position, file)
    return file.read_text()


def test_a_figure_has_lines_area_moments_and_words(tmp_path):
    text = svg(tmp_path, [trace_of(SWD, RASH, SWINGS, SETTLED)])
    for word in ("confidence", "modulated score", "instability D", "committed", "'a'", "'pens'"):
        assert word in text
    assert "position 1: 'pens' at step" in text


def test_two_traces_are_two_panels_over_the_same_steps(tmp_path):
    both = [trace_of(PLAIN, RASH, SWINGS), trace_of(SWD, RASH, SWINGS, SETTLED)]
    text = svg(tmp_path, both)
    assert "confidence | eb(0.1); position 1" in text
    assert f"{SWD}; position 1" in text


def test_the_same_trace_gives_the_same_bytes(tmp_path):
    trace = trace_of(SWD, RASH, SWINGS, SETTLED)
    for kind in ("svg", "png"):
        files = [tmp_path / f"{name}.{kind}" for name in ("one", "two")]
        for file in files:
            commitment_figure([trace], 1, file)
        assert files[0].read_bytes() == files[1].read_bytes()


def test_a_score_that_is_no_share_gets_an_axis_of_its_own(tmp_path):
    assert PositionPanel(Timeline(trace_of("entropy | swd(5) | eb(0.1)", RASH, SWINGS), 1)).apart
    assert not PositionPanel(Timeline(trace_of(SWD, RASH, SWINGS), 1)).apart
    assert ">score<" in svg(tmp_path, [trace_of("entropy | swd(5) | eb(0.1)", RASH, SWINGS)])


def test_an_instability_beyond_the_axis_is_cut_and_says_how_much_it_is(tmp_path):
    flip = [said(("the", 0.9), (word, 0.99999), ("cups", 1 - 1e-9)) for word in ("a", "pens", "a")]
    trace = trace_of("confidence | swd(5) | top(1)", *flip, canvas=[5, 5, 5])
    moved = [value for _, value in PositionPanel(Timeline(trace, 1)).moved]
    assert max(moved) > CLIP
    assert f"▲ {max(moved):.2g}" in svg(tmp_path, [trace])


def test_traces_of_different_prompts_are_not_set_beside_each_other(tmp_path):
    other = trace_of(PLAIN, RASH, SWINGS, canvas=[0, 5, 5])
    with pytest.raises(TraceError, match="differ before position 1"):
        svg(tmp_path, [trace_of(PLAIN, RASH, SWINGS), other])


def test_another_kind_of_file_is_an_error(tmp_path):
    with pytest.raises(UnmaskError, match=r"a figure must end in \.svg, \.png, \.pdf"):
        commitment_figure([trace_of(PLAIN, RASH, SWINGS)], 1, tmp_path / "figure.gif")


def test_without_matplotlib_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UnmaskError, match="pip install 'unmask"):
        svg(tmp_path, [trace_of(PLAIN, RASH, SWINGS)])


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "entropy | swd(2, start=uniform, form=signed) | eb(0.5)",
        "confidence | swd(1) | threshold(0.4) | revoke(0.2, times=2)",
        "confidence | pc(0.25) | eb(0.1)",
        "credit(0.65) | confidence | swd(5) | threshold(0.5)",
        "random | top(1)",
    ],
)
def test_every_written_position_can_be_drawn(tmp_path, text):
    for seed, place in ((0, 0), (3, -1)):
        model, request = anything(text, seed)
        trace = Trace.of(traced(model, request)[0])
        assert svg(tmp_path, [trace], written(trace)[place])
