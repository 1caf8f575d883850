"""The playground in a real browser, against a real server: ask, race, watch, download."""

from __future__ import annotations

import re
import time
from io import BytesIO

import pytest

from tests.server.serving import Gate, serving
from unmask.decoding.options import EOS_POLICIES
from unmask.embedded import PROMPTS
from unmask.trace import Trace


@pytest.fixture
def tab(browser):
    """Opens the playground; errors and requests to other hosts fail the test."""
    contexts, wrong = [], []

    def opened(running, expected=(), **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(90_000)  # the machine may be busy
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)

        def asked(request):
            if not request.url.startswith((running.url, "blob:", "data:")):
                wrong.append(request.url)

        page.on("request", asked)
        page.goto(running.url)
        page.wait_for_selector("html[data-ready=yes]")
        page.expected = expected
        return page

    yield opened
    for context in contexts:
        unexpected = [
            text for text in wrong if not any(e in text for e in context.pages[0].expected)
        ]
        assert not unexpected
        context.close()


@pytest.fixture(scope="module")
def running():
    with serving() as running:
        yield running


def race(page, **fields):
    for name, value in {"length": "16", **fields}.items():
        page.fill(f"#{name}", value)
    page.click("#run")
    page.wait_for_selector(".downloads a")


def comes_to(page, text):
    """Wait until the player is at some step."""
    page.locator(".at", has_text=re.compile(f"^{text}$")).wait_for()


def test_two_rules_race_and_the_page_shows_what_the_server_says(tab, running):
    page = tab(running)
    assert page.input_value("#rule-a") == "entropy | threshold(-0.1)"
    assert page.input_value("#rule-b") == "confidence | swd(5) | eb(0.1)"
    race(page)
    costs = []
    for name in "ab":
        rule = page.input_value(f"#rule-{name}")
        said = running.chat(page.input_value("#prompt"), rule=rule, length=16, eos="keep").json()
        costs.append(said["usage"]["nfe"])
        text = said["choices"][0]["message"]["content"]
        assert page.locator(".answer").nth("ab".index(name)).inner_text() == text
    state = page.inner_text("#state")
    assert state.startswith(f"A: {costs[0]} forwards, B: {costs[1]} forwards.")
    comes_to(page, f"{max(costs)} / {max(costs)}")


def test_the_traces_can_be_downloaded(tab, running):
    page = tab(running)
    race(page)
    for name in "ab":
        with page.expect_download() as caught:
            page.click(f"[data-trace={name}]")
        assert caught.value.suggested_filename == f"{name}.trace"
        trace = Trace.read(caught.value.path())
        assert trace.finished
        assert str(trace.rule) == page.input_value(f"#rule-{name}")


def test_one_rule_alone_can_be_watched_step_by_step_with_keys(tab, running):
    page = tab(running)
    page.fill("#rule-b", "")
    assert page.inner_text("#run") == "Run"
    race(page)
    page.click("h1")
    page.keyboard.press("Home")
    assert page.inner_text(".at").startswith("0 /")
    page.keyboard.press("ArrowRight")
    assert page.inner_text(".at").startswith("1 /")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector(".details :text('Position')")


def test_a_text_can_be_filled(tab, running):
    page = tab(running)
    page.check("input[value=infill]")
    page.fill("#prompt", "Ann has[MASK*6].")
    page.click("#run")
    page.wait_for_selector(".downloads a")
    assert page.locator(".answer").first.inner_text().startswith("Ann has")


def test_a_wrong_rule_is_told_beside_its_field_and_the_other_one_runs(tab, running):
    page = tab(running, expected=["400"])
    page.fill("#rule-b", "confidance | top(1)")
    race(page)
    assert "did you mean 'confidence'?" in page.inner_text("#trouble-b")
    assert page.locator(".run").count() == 1


def test_masks_and_unknown_words_are_warned_of_once_as_in_run(tab, running):
    page = tab(running)
    race(page, prompt="Repeat: zyzzyva, [MASK].")
    warned = page.inner_text("#doubts")
    assert warned.count("embedded does not know these words: 'zyzzyva'") == 1
    assert warned.count("[MASK] in a prompt is plain text; infill fills it") == 1
    race(page, prompt="Repeat: pig.")
    assert page.is_hidden("#doubts")


def test_a_recipe_of_the_list_keeps_its_block(tab, running):
    page = tab(running)
    names = page.eval_on_selector_all("#recipes option", "all => all.map(each => each.value)")
    assert {"swd-block32", "fast-dllm"} <= set(names)
    race(page, **{"rule-a": "fast-dllm", "rule-b": "", "length": "40"})
    with page.expect_download() as caught:
        page.click("[data-trace=a]")
    trace = Trace.read(caught.value.path())
    assert trace.settings.block == 32


def test_the_block_of_the_servers_own_recipe_is_filled_in(tab):
    with serving("--rule", "swd-block32") as blocks:
        page = tab(blocks)
        assert page.input_value("#block") == "32"


def test_the_eos_policies_are_the_servers_own_and_its_default_is_chosen(tab):
    with serving("--eos", "stop") as server:
        page = tab(server)
        policies = page.eval_on_selector_all("#eos option", "all => all.map(each => each.value)")
        assert tuple(policies) == EOS_POLICIES
        assert page.input_value("#eos") == "stop"


def test_a_server_with_a_key_asks_for_it(tab):
    with serving(key="secret") as guarded:
        page = tab(guarded, expected=["401"])
        assert "needs its API key" in page.inner_text("#state")
        page.fill("#key", "secret")
        page.press("#key", "Tab")
        page.wait_for_selector("#recipes option", state="attached")
        race(page)


def test_steps_appear_while_the_run_goes_on_and_stop_frees_the_row(tab, monkeypatch):
    monkeypatch.setattr("unmask.trace.recording.tracer.STEPS", 1)
    gates = []

    def gated(model):
        gates.append(Gate(model))
        return gates[0]

    with serving(wrap=gated) as slow:
        page = tab(slow, reduced_motion="reduce")
        page.fill("#rule-a", "confidence | top(1)")
        page.fill("#rule-b", "")
        page.fill("#length", "16")
        page.click("#run")
        gates[0].let(3)
        comes_to(page, "3 / 3")
        gates[0].let(2)
        comes_to(page, "5 / 5")
        page.click("#stop")
        deadline = time.monotonic() + 20
        while not slow.service.engine._cancelled and time.monotonic() < deadline:
            time.sleep(0.01)
        gates[0].let_all()
        while slow.service.engine.rows and time.monotonic() < deadline:
            time.sleep(0.01)
        assert slow.service.engine.counts.cancelled == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(tab, running, scheme):
    page = tab(running, viewport={"width": 360, "height": 740}, color_scheme=scheme)
    race(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    shot = BytesIO(page.screenshot())
    assert len(shot.getvalue()) > 10_000


def test_after_a_race_a_phone_shows_the_canvas_and_not_the_form(tab, running):
    page = tab(running, viewport={"width": 390, "height": 844}, reduced_motion="reduce")
    race(page)
    box = page.locator("#viewer .canvas").first.bounding_box()
    assert box["y"] >= 0
    assert box["y"] + box["height"] < 844


def test_example_prompts_can_be_clicked_and_the_model_knows_their_words(tab, running):
    page = tab(running)
    page.check("input[value=raw]")
    buttons = page.locator("#examples button")
    assert buttons.all_inner_texts() == list(PROMPTS)
    buttons.nth(1).click()
    assert page.input_value("#prompt") == PROMPTS[1]
    race(page)
    assert page.locator(".answer").first.inner_text().startswith("fox, hen, owl")
    assert page.is_hidden("#doubts")


def test_every_field_has_a_name(tab, running):
    page = tab(running)
    fields = page.locator("form input, form select, form textarea, form button")
    for place in range(fields.count()):
        name = fields.nth(place).evaluate(
            "e => (e.labels?.[0]?.textContent ?? e.textContent).trim()"
        )
        assert name
