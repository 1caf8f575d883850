"""For everyone: themes, phones, names of controls, contrast; and hostile traces do no harm."""

from __future__ import annotations

import gzip
import json
import re
from itertools import pairwise

import pytest

from tests.page.test_browser import chip, go, settle
from unmask.page.build import TraceFile, source

EVIL = "</script><img src=x onerror=\"document.title='pwned'\">"


def luminance(colour):
    """Relative luminance (WCAG 2) of '#rrggbb'."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def themed(name):
    """The light and the dark value of a colour in the style sheet."""
    return re.search(
        rf"--{name}: light-dark\((#\w{{6}}), (#\w{{6}})\)", source("page.css")
    ).groups()


LEVELS = re.findall(
    r'\[data-level="\d+"\] \{ --part: [\d.]+; --fill: light-dark\((#\w+), (#\w+)\); '
    r"--on: light-dark\((#\w+), (#\w+)\);",
    source("page.css"),
)


def test_the_scale_can_be_read_in_both_themes():
    assert len(LEVELS) == 12
    for light, dark, on_light, on_dark in LEVELS:
        assert contrast(light, on_light) >= 4.5
        assert contrast(dark, on_dark) >= 4.5


@pytest.mark.parametrize(("theme", "sign"), [(0, -1), (1, 1)])
def test_the_scale_is_told_apart_by_lightness_alone(theme, sign):
    steps = [luminance(level[theme]) for level in LEVELS]
    assert all((b - a) * sign > 0.01 for a, b in pairwise(steps))


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("ink", ["ink", "soft", "link", "now"])
def test_text_has_contrast_on_every_ground(theme, ink):
    for ground in ("page", "band"):
        assert contrast(themed(ink)[theme], themed(ground)[theme]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_are_followed_and_can_be_switched(theme, traces, show):
    tab = show(traces("swd"), theme=theme)

    def ground():
        return tab.evaluate("getComputedStyle(document.body).backgroundColor")

    light, dark = "rgb(255, 255, 255)", "rgb(20, 24, 28)"
    assert ground() == (dark if theme == "dark" else light)
    tab.click("#theme")
    assert ground() == (light if theme == "dark" else dark)
    tab.click("#theme")
    assert ground() == (dark if theme == "dark" else light)


@pytest.mark.parametrize("names", [("swd",), ("eb", "swd")])
def test_a_phone_never_scrolls_sideways(names, traces, show):
    tab = show(*map(traces, names), wide=False, touch=True)
    for step in (0, 5, 14):
        go(tab, step)
        chip(tab, 24).tap()
        settle(tab)
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box = tab.locator("#bar").bounding_box()
    assert abs(box["y"] + box["height"] - 740) < 2  # the controls stay at the bottom
    assert "24: ‘" in tab.inner_text(".strip")


def test_what_is_tapped_is_large_enough(traces, show):
    tab = show(traces("swd"), wide=False)
    sizes = tab.locator("button:visible, select:visible, input[type=range]:visible").evaluate_all(
        "nodes => nodes.map((node) => node.getBoundingClientRect()).map((x) => [x.width, x.height])"
    )
    assert sizes
    assert all(width >= 40 and height >= 40 for width, height in sizes)


def test_every_control_has_a_name_and_every_landmark_is_there(traces, show):
    tab = show(traces("eb"), traces("swd"))
    go(tab, 3)
    nameless = tab.evaluate(
        """() => [...document.querySelectorAll("button, select, input, summary, [role], svg")]
        .filter((node) => !["presentation", "alert"].includes(node.role))
        .filter((node) => !node.ariaHidden && !node.ariaLabel && !node.labels?.length)
        .filter((node) => !node.textContent.trim() && !node.closest("[aria-hidden]"))
        .map((node) => node.outerHTML)"""
    )
    assert nameless == []
    for landmark in ("header", "main", "footer"):
        assert tab.locator(f"body > {landmark}").count() == 1
    ids = tab.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
    assert len(ids) == len(set(ids))
    assert tab.evaluate("document.documentElement.lang") == "en"


def test_focus_can_be_seen(traces, show):
    tab = show(traces("swd"))
    tab.keyboard.press("Tab")
    style = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert style == "solid"


def evil(path):
    """A trace in which everything that can be text is hostile."""
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    for line in lines:
        line["words"] = dict.fromkeys(line.get("words", {}), EVIL)
    header, end = lines[0], lines[-1]
    header["model"]["name"] = header["settings"]["eos"] = header["settings"]["rule"] = EVIL
    end["end"]["text"] = EVIL
    return gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode())


def test_hostile_texts_stay_texts(traces, show):
    tab = show(data=[TraceFile(EVIL, evil(traces("swd")))])
    go(tab, 14)
    chip(tab, 20).click()
    settle(tab)
    tab.click(".chart summary")
    assert tab.locator("img").count() == 0
    assert tab.title() == f"{EVIL} – unmask"
    assert chip(tab, 20).inner_text() == EVIL
    assert EVIL in tab.inner_text(".about")


def test_spaces_and_signs_that_cannot_be_seen_are_shown(traces, show):
    path = traces("swd")
    content = gzip.decompress(path.read_bytes()).decode()
    words = {" 12": " a\u202eb", " 3": "\n  ", ".": " ", " pens": "\t x  "}
    for old, new in words.items():
        content = content.replace(f":{json.dumps(old)}", f":{json.dumps(new)}")
    tab = show(data=[TraceFile("a", gzip.compress(content.encode()))])
    prompt = tab.locator(".chip[data-kind=given]").all_inner_texts()
    assert "a\\u202eb" in prompt
    assert "⏎␣␣" in prompt
    assert "␣" in prompt
    assert "⇥␣x␣␣" in prompt
    assert tab.locator(".after br").count() == 1


def test_a_run_that_was_cut_off_says_so(traces, show):
    data = traces("swd").read_bytes()
    tab = show(data=[TraceFile("cut", data[: len(data) // 2])])
    steps = int(tab.locator(".at").inner_text().split(" / ")[1])
    assert 0 < steps < 14
    assert tab.inner_text(".cost") == f"cut off at step {steps}"


def test_files_can_be_opened_and_a_wrong_one_is_named(traces, show, tmp_path):
    tab = show()
    assert tab.locator("#welcome").is_visible()
    assert not tab.locator("#bar").is_visible()
    wrong = tmp_path / "notes.txt"
    wrong.write_text("hello")
    tab.set_input_files("#file", wrong)
    tab.wait_for_selector("#trouble:not([hidden])")
    assert tab.inner_text("#trouble") == "notes.txt is not a trace of unmask"
    tab.set_input_files("#file", [traces("eb"), traces("swd")])
    tab.wait_for_selector(".run-1")
    assert not tab.locator("#welcome").is_visible()
    assert tab.locator(".which").all_inner_texts() == ["A", "B"]
