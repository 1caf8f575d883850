"""The page as people use it: play, step, hover, tap, keys, colours, screen readers, phones."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest

from unmask.trace import Trace


def go(tab, step):
    """Put the slider on a step."""
    tab.locator("#bar input[type=range]").evaluate(
        "(node, step) => { node.value = step; node.dispatchEvent(new Event('input')); }", step
    )
    tab.wait_for_function(
        "(step) => document.querySelector('.at').value.startsWith(step)", arg=f"{step} /"
    )
    settle(tab)


def settle(tab):
    """Wait until what has changed is drawn."""
    tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


def at(tab):
    return tab.locator(".at").inner_text()


def chip(tab, position, run=0):
    return tab.locator(f".run-{run} .chip[data-position='{position}']")


def shown(x):
    """A number as the page writes it."""
    if np.isinf(x):
        return "∞" if x > 0 else "−∞"
    size = abs(float(x))
    if size == 0 or size >= 0.001:
        text = str(Decimal(size).quantize(Decimal("0.001"), ROUND_HALF_UP))
    else:
        digits, _, exponent = f"{size:.1e}".partition("e")
        text = f"{digits}e−{-int(exponent)}"
    return f"−{text}" if x < 0 else text


def numbers(tab, run=0):
    """What the panel says about the chosen token."""
    cells = tab.locator(f".run-{run} .numbers dd")
    return dict(
        cells.evaluate_all("nodes => nodes.map((node) => [node.dataset.name, node.textContent])")
    )


def expected(moment, place):
    moved = moment.instability[place]
    count = len(moment.positions)
    base = np.exp(moment.base[place]) if moment.logarithmic else moment.base[place]
    return {
        "confidence": shown(moment.confidence[place]),
        "margin": shown(moment.margin[place]),
        "entropy": f"{shown(moment.entropy[place])} nats",
        "instability": "no earlier step" if np.isnan(moved) else f"{shown(moved)} nats",
        "base": shown(base),
        "score": shown(moment.value[place]),
        "rank": f"{moment.rank[place] + 1} of {count}",
        "base_rank": f"{moment.base_rank[place] + 1} of {count}",
    }


def test_play_goes_to_the_end_and_stops_there(traces, show):
    tab = show(traces("swd"))
    steps = len(Trace.read(traces("swd")).moments)
    assert at(tab) == f"0 / {steps}"
    tab.select_option("#bar select", "30")
    tab.click("[data-act=play]")
    assert tab.locator("[data-act=pause]").count() == 1
    end = f"{steps} / {steps}"
    tab.wait_for_function("(end) => document.querySelector('.at').value === end", arg=end)
    assert tab.locator("[data-act=play]").count() == 1
    assert tab.locator("#voice").inner_text().startswith(f"Step {steps} of {steps}: committed")


def test_a_pause_holds_the_step_and_play_at_the_end_begins_again(traces, show):
    tab = show(traces("swd"))
    tab.keyboard.press("End")
    tab.click("[data-act=play]")
    tab.click("[data-act=pause]")
    assert at(tab).startswith("0 /")
    assert tab.locator("[data-act=play]").get_attribute("aria-label") == "Play (space)"


def test_buttons_slider_and_keys_step(traces, show):
    tab = show(traces("swd"))
    steps = len(Trace.read(traces("swd")).moments)
    for act, step in (("next", 1), ("next", 2), ("back", 1), ("last", steps), ("first", 0)):
        tab.click(f"[data-act={act}]")
        assert at(tab) == f"{step} / {steps}"
    tab.locator("h1").click()
    for key, step in (
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("End", steps),
        ("Home", 0),
    ):
        tab.keyboard.press(key)
        assert at(tab) == f"{step} / {steps}"
    tab.focus("#bar input[type=range]")
    tab.keyboard.press("ArrowRight")
    assert at(tab) == f"1 / {steps}"
    tab.keyboard.press("Space")
    assert tab.locator("[data-act=pause]").count() == 1
    tab.keyboard.press("Space")


@pytest.mark.parametrize("name", ["swd", "revoke", "block", "infill"])
def test_the_canvas_of_every_step_is_pythons(name, traces, show):
    tab, trace = show(traces(name)), Trace.read(traces(name))
    for step in range(len(trace.moments) + 1):
        go(tab, step)
        kinds = tab.locator(".chip").evaluate_all("nodes => nodes.map((node) => node.dataset.kind)")
        words = tab.locator(".chip").evaluate_all("nodes => nodes.map((node) => node.textContent)")
        for position, token in enumerate(trace.canvas_after(step)):
            masked = token == trace.spec.mask_id
            assert (kinds[position] in ("waiting", "ahead")) == masked
            if not masked:
                word = trace.word(token)
                blank = word.replace("\n", "⏎").replace(" ", "␣")
                wanted = "EOS" if token == trace.spec.eos_id else word.strip() or blank
                assert words[position] == wanted
        now = tab.locator(".chip[data-now][data-kind=committed]")
        marked = now.evaluate_all("nodes => nodes.map((node) => Number(node.dataset.position))")
        assert marked == (sorted(trace.moments[step - 1].committed) if step else [])


@pytest.mark.parametrize("name", ["swd", "entropy", "block", "klass"])
def test_hovering_shows_the_numbers_that_python_reads(name, traces, show):
    tab, trace = show(traces(name)), Trace.read(traces(name))
    last = len(trace.moments)
    for step in (1, 2, last // 2, last):
        go(tab, step)
        moment = trace.moments[step - 1]
        for place in (0, len(moment.positions) // 2, len(moment.positions) - 1):
            position = int(moment.positions[place])
            chip(tab, position).hover()
            settle(tab)
            panel = numbers(tab)
            assert {key: panel[key] for key in expected(moment, place)} == expected(moment, place)
            words = tab.locator(".bars .figure").all_inner_texts()
            assert words == [shown(p) for p in moment.probabilities[place]]


def test_a_committed_token_keeps_the_numbers_of_its_commitment(traces, show):
    tab, trace = show(traces("swd")), Trace.read(traces("swd"))
    go(tab, len(trace.moments))
    position, step = 20, int(trace.commit_step[20])
    moment = trace.moments[step]
    place = moment.place(position)
    chip(tab, position).click()
    settle(tab)
    assert f"Committed in step {step + 1} as rank {moment.rank[place] + 1} of" in tab.inner_text(
        ".sentence"
    )
    assert numbers(tab)["confidence"] == shown(moment.confidence[place])


def test_leaving_a_token_returns_to_the_chosen_one(traces, show):
    tab = show(traces("swd"))
    go(tab, 3)
    chip(tab, 25).click()
    chip(tab, 28).hover()
    settle(tab)
    assert tab.inner_text(".chosen-token").startswith("Position 28")
    tab.mouse.move(5, 5)
    settle(tab)
    assert tab.inner_text(".chosen-token").startswith("Position 25")


def test_every_state_has_its_sentence(traces, show):
    tab, trace = show(traces("revoke")), Trace.read(traces("revoke"))
    step = next(i for i, moment in enumerate(trace.moments) if moment.revoked)
    go(tab, step + 1)
    taken = trace.moments[step].revoked[0]
    chip(tab, taken).click()
    settle(tab)
    assert tab.inner_text(".sentence").startswith("Taken back in this step")
    assert "↺" in chip(tab, taken).get_attribute("data-marks")
    chip(tab, 2).click()
    settle(tab)
    assert tab.inner_text(".sentence").startswith("Part of the prompt")
    tab, trace = show(traces("block")), Trace.read(traces("block"))
    go(tab, 1)
    ahead = trace.moments[0].window[1] + 1
    chip(tab, ahead).click()
    settle(tab)
    assert "its block comes after" in tab.inner_text(".sentence")
    go(tab, len(trace.moments))
    filled = next(p for moment in trace.moments for p in moment.filled)
    chip(tab, filled).click()
    settle(tab)
    assert tab.inner_text(".sentence").startswith("Written by the EOS policy (stop) in step")


def test_colours_follow_the_mode(traces, show):
    tab = show(traces("swd"))
    go(tab, 9)

    def levels():
        settle(tab)
        return tab.locator(".chip").evaluate_all(
            "nodes => nodes.map((node) => node.dataset.level ?? '')"
        )

    seen = [levels()]
    for mode in ("instability", "step", "score"):
        tab.keyboard.press("c")
        assert tab.input_value("#mode") == mode
        seen.append(levels())
    assert len({tuple(each) for each in seen}) == 4
    tab.keyboard.press("c")
    assert levels() == seen[0]
    tab.select_option("#mode", "step")
    assert levels() == seen[2]


def test_the_level_of_a_colour_is_the_number_behind_it(traces, show):
    tab, trace = show(traces("swd")), Trace.read(traces("swd"))
    go(tab, 5)
    moment = trace.moments[4]
    for place, position in enumerate(moment.positions):
        level = chip(tab, position).get_attribute("data-level")
        assert int(level) == min(11, int(moment.confidence[place] * 12))


def test_numbers_and_guesses_can_be_shown_and_hidden(traces, show):
    tab, trace = show(traces("swd")), Trace.read(traces("swd"))
    go(tab, 4)
    moment = trace.moments[3]
    place = moment.place(25)
    assert chip(tab, 25).inner_text() == trace.word(moment.token[place]).strip()
    tab.keyboard.press("n")
    settle(tab)
    assert chip(tab, 25).get_attribute("data-number") == f"{moment.confidence[place]:.2f}"
    tab.keyboard.press("g")
    settle(tab)
    assert chip(tab, 25).inner_text() == "··"


def test_the_queue_is_pythons_and_shows_both_sets(traces, show):
    tab, trace = show(traces("swd")), Trace.read(traces("swd"))
    go(tab, 1)
    moment = trace.moments[0]
    assert sorted(moment.unweighted) != sorted(moment.committed)  # SWD changes this step
    rows = tab.locator(".queue tbody tr[data-position]")
    order = rows.evaluate_all("nodes => nodes.map((node) => Number(node.dataset.position))")
    assert order == [moment.positions[place] for place in moment.queue][: len(order)]
    chosen = tab.locator(".queue tr.chosen").evaluate_all(
        "n => n.map((x) => Number(x.dataset.position))"
    )
    assert chosen == sorted(moment.committed)
    ringed = [p for p in order if "○" in tab.inner_text(f".queue tr[data-position='{p}']")]
    assert sorted(ringed) == sorted(moment.unweighted)
    assert "SWD does not commit 41" in tab.inner_text(".effect")
    go(tab, 3)
    spent = trace.moments[2].gauge
    more = f"with one more it would be {shown(spent['next'])}"
    assert tab.inner_text(".cut") == f"cut: {shown(spent['spent'])} spent of γ = 0.1; {more}"
    tab.click(".queue-part > button")
    assert rows.count() == len(trace.moments[2].positions)
    rows.nth(4).click()
    settle(tab)
    position = rows.nth(4).get_attribute("data-position")
    assert tab.inner_text(".chosen-token").startswith(f"Position {position}:")


def test_the_chart_tells_the_chosen_token_over_time(traces, show):
    tab, trace = show(traces("swd")), Trace.read(traces("swd"))
    go(tab, 3)
    chip(tab, 24).click()
    settle(tab)
    seen = [m for m in trace.moments if m.place(24) is not None]
    summary = tab.locator(".plot svg[role=img]").get_attribute("aria-label")
    assert summary.startswith(f"Position 24 over {len(seen)} steps: confidence")
    assert f"committed in step {trace.commit_step[24] + 1}" in summary
    assert tab.locator(".plot .moment.committed").count() == 1
    tab.click(".chart summary")
    rows = tab.locator(".chart tbody tr")
    rows.first.wait_for()
    assert rows.count() == len(seen)
    first = rows.nth(1).locator("td").all_inner_texts()
    place = seen[1].place(24)
    assert first[1:4] == [
        shown(x[place]) for x in (seen[1].confidence, seen[1].instability, seen[1].value)
    ]
    before = tab.locator(".cursor line").get_attribute("x1")
    tab.locator(".plot").click(position={"x": 300, "y": 60})
    settle(tab)
    assert tab.locator(".cursor line").get_attribute("x1") != before
    assert not at(tab).startswith("3 /")


def test_tokens_are_walked_with_the_arrow_keys_and_one_tab_stop(traces, show):
    tab, trace = show(traces("swd")), Trace.read(traces("swd"))
    tab.keyboard.press("ArrowDown")
    assert tab.evaluate("document.activeElement.dataset.position") == "19"
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowUp")
    assert tab.evaluate("document.activeElement.dataset.position") == "20"
    assert tab.locator(".chip[tabindex='0']").count() == 1
    assert tab.locator(".chip[aria-selected=true]").get_attribute("data-position") == "20"
    tab.keyboard.press("ArrowRight")
    settle(tab)
    label = chip(tab, 20).get_attribute("aria-label")
    place = trace.moments[0].place(20)
    assert label.startswith("position 20, mask, best guess ‘ 12’, Not committed: rank")
    assert f"rank {trace.moments[0].rank[place] + 1} of 24" in label


def test_the_question_mark_lists_the_keys(traces, show):
    tab = show(traces("swd"))
    tab.keyboard.press("?")
    assert tab.locator("#keys").is_visible()
    tab.keyboard.press("ArrowRight")
    assert at(tab).startswith("0 /")
    tab.keyboard.press("Escape")
    assert not tab.locator("#keys").is_visible()


def test_a_step_is_told_to_screen_readers_while_paused(traces, show):
    tab, trace = show(traces("swd")), Trace.read(traces("swd"))
    go(tab, 11)
    committed = ", ".join(
        f"‘{trace.word(token)}’ at {position}"
        for position, token in trace.moments[10].committed.items()
    )
    assert tab.locator("#voice").get_attribute("aria-live") == "polite"
    assert (
        tab.locator("#voice").text_content()
        == f"Step 11 of {len(trace.moments)}: committed {committed}."
    )
