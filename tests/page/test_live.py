"""Runs that are still going on: steps are appended to what is shown, as a server sends them."""

from __future__ import annotations

import gzip
import json

import pytest

from unmask.page.build import script

OPEN = """(records) => {
%s
const box = () => document.body.appendChild(document.createElement("div"));
const trace = new Trace(records[0], "live");
const viewer = new Viewer(box(), box(), box());
viewer.open([trace]);
window.live = {
  add: (record) => { trace.append(record); viewer.grown(); viewer.render(); },
  press: (key) => { viewer.key(key); viewer.render(); },
};
}"""


@pytest.fixture
def live(browser, traces):
    """A viewer that knows only what was asked, and the lines that are still to come."""
    content = gzip.decompress(traces("swd").read_bytes())
    records = [json.loads(line) for line in content.splitlines()]
    tab = browser.new_page()
    trouble = []
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    tab.evaluate(OPEN % script("trace.js", "viewer.js"), records[:1])
    yield tab, records[1:]
    tab.close()
    assert trouble == []


def add(tab, record):
    tab.evaluate("(record) => live.add(record)", record)


def test_a_run_is_followed_while_its_steps_arrive(live):
    tab, records = live
    assert tab.inner_text(".at") == "0 / 0"
    assert tab.inner_text(".cost") == "step 0"
    for number, record in enumerate(records[:-1], 1):
        add(tab, record)
        assert tab.inner_text(".at") == f"{number} / {number}"
        committed = sorted(position for position, _ in record["committed"])
        marked = tab.locator(".chip[data-now][data-kind=committed]")
        positions = marked.evaluate_all(
            "nodes => nodes.map((node) => Number(node.dataset.position))"
        )
        assert positions == committed
    add(tab, records[-1])
    assert tab.inner_text(".cost") == "NFE 14, 14 until EOS"
    assert tab.inner_text(".answer") == records[-1]["end"]["text"]


def test_who_looks_back_stays_there_while_steps_arrive(live):
    tab, records = live
    for record in records[:4]:
        add(tab, record)
    tab.evaluate("live.press('ArrowLeft')")
    tab.evaluate("live.press('ArrowDown')")
    for record in records[4:]:
        add(tab, record)
    assert tab.inner_text(".at") == "3 / 14"
    points = tab.locator(".plot svg").get_attribute("aria-label")
    assert points.startswith("Position 19 over")
