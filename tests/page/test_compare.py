"""Two runs side by side: in step, with the first difference marked."""

from __future__ import annotations

import pytest

from tests.page.test_browser import at, chip, go, settle
from unmask.trace import Trace


def deeds(trace, step):
    """What a step did, as far as two runs can be compared; None after the end."""
    if step >= len(trace.moments):
        return None
    moment = trace.moments[step]
    return sorted(moment.writes.items()), moment.revoked


def first_difference(one, other):
    most = max(len(one.moments), len(other.moments))
    return next((i + 1 for i in range(most) if deeds(one, i) != deeds(other, i)), None)


@pytest.mark.parametrize(
    "names", [("eb", "swd"), ("swd", "revoke"), ("swd", "credit"), ("swd", "klass")]
)
def test_the_first_difference_is_marked_and_reached_with_d(names, traces, show):
    runs = [Trace.read(traces(name)) for name in names]
    tab = show(*map(traces, names))
    wanted = first_difference(*runs)
    assert f"first differ in step {wanted};" in tab.inner_text(".verdict")
    assert tab.locator(".runs").get_attribute("data-at") == ""
    tab.keyboard.press("d")
    settle(tab)
    assert at(tab) == f"{wanted} / {max(len(run.moments) for run in runs)}"
    assert tab.locator(".runs").get_attribute("data-at") == "difference"
    assert tab.locator("#voice").text_content().startswith("First difference. Run A: Step")
    tab.keyboard.press("Home")
    tab.click("[data-act=difference]")
    assert at(tab).startswith(f"{wanted} /")


def test_positions_that_end_differently_are_marked(traces, show):
    runs = [Trace.read(traces(name)) for name in ("eb", "swd")]
    tab = show(traces("eb"), traces("swd"))
    ends = [run.canvas_after(-1) for run in runs]
    wanted = [i for i, (a, b) in enumerate(zip(*ends, strict=True)) if a != b]
    for run in (0, 1):
        marked = tab.locator(f".run-{run} .chip[data-marks*='≠']")
        assert marked.evaluate_all("n => n.map((x) => Number(x.dataset.position))") == wanted


def test_equal_runs_are_called_equal(traces, show):
    tab = show(traces("swd"), traces("swd"))
    assert tab.inner_text(".verdict") == "Both runs are the same in every step."
    tab.keyboard.press("d")
    assert at(tab).startswith("0 /")


def test_a_token_is_shown_in_both_runs(traces, show):
    tab = show(traces("eb"), traces("swd"))
    go(tab, 4)
    chip(tab, 25, run=1).hover()
    settle(tab)
    assert [text[:11] for text in tab.locator(".chosen-token").all_inner_texts()] == [
        "Position 25"
    ] * 2


def test_the_shorter_run_stays_at_its_end(traces, show):
    short, long = Trace.read(traces("swd")), Trace.read(traces("klass"))
    assert len(short.moments) < len(long.moments)
    tab = show(traces("swd"), traces("klass"))
    tab.keyboard.press("End")
    settle(tab)
    assert tab.locator(".run-0 .chip[data-kind=waiting]").count() == 0
    assert f"Run A: Step {len(short.moments)} of {len(short.moments)}" in tab.inner_text("#voice")


def test_other_prompts_and_lengths_are_said(traces, show):
    tab = show(traces("swd"), traces("infill"))
    text = tab.inner_text(".verdict")
    assert "The prompts differ; positions are matched from the first mask on." in text
    assert "The canvases differ in length" in text
    one, other = (Trace.read(traces(name)) for name in ("swd", "infill"))
    start = int((one.canvas == one.spec.mask_id).argmax())
    there = int((other.canvas == other.spec.mask_id).argmax())
    chip(tab, start + 1).click()
    settle(tab)
    assert tab.locator(".chosen-token").all_inner_texts()[1].startswith(f"Position {there + 1}:")
    chip(tab, len(one.canvas) - 1).click()
    settle(tab)
    assert tab.locator(".chosen-token").all_inner_texts()[1] == "No token chosen"
