"""Traces of real runs, and tabs to look at their pages in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.page.page_runs import PROMPT, RUNS
from unmask.cli import main
from unmask.page.build import TraceFile, page


@pytest.fixture(scope="session")
def traces(tmp_path_factory) -> Callable[[str], Path]:
    """The trace of a run by its name, made when it is first asked for."""
    folder = tmp_path_factory.mktemp("traces")

    def trace(name: str) -> Path:
        path = folder / f"{name}.trace"
        if not path.exists():
            rule, *more = RUNS[name]
            asked = ["Ann has[MASK*6]."] if name == "infill" else [PROMPT, "--length", "24"]
            assert main(["run", *asked, "--rule", rule, *more, "--trace", str(path)]) == 0
        return path

    return trace


@pytest.fixture(scope="module")
def tab_of(browser):
    """A tab for each way to look at a page; tests take turns in it."""
    tabs = {}

    def tab(wide, theme, touch):
        if (wide, theme, touch) not in tabs:
            size = {"width": 1280, "height": 900} if wide else {"width": 360, "height": 740}
            context = browser.new_context(
                viewport=size, color_scheme=theme, has_touch=touch, is_mobile=touch
            )
            context.set_default_timeout(90_000)  # a busy machine is no failure
            tabs[wide, theme, touch] = context.new_page()
        return tabs[wide, theme, touch]

    return tab


@pytest.fixture
def show(tab_of, tmp_path):
    """Opens traces in a tab; at the end nothing may have gone wrong in it."""
    trouble = []
    listeners = {
        "console": lambda message: trouble.append(message.text),
        "pageerror": lambda error: trouble.append(str(error)),
        "request": lambda sent: None if _allowed(sent.url) else trouble.append(sent.url),
    }
    seen = set()

    def show(*files, wide=True, theme="light", touch=False, data=()):
        tab = tab_of(wide, theme, touch)
        if tab not in seen:
            seen.add(tab)
            for event, listener in listeners.items():
                tab.on(event, listener)
        file = tmp_path / "page.html"
        traces = [TraceFile.read(path) for path in files] + list(data)
        file.write_text(page(traces), encoding="utf-8")
        tab.mouse.move(0, 0)
        tab.goto(file.as_uri())
        tab.wait_for_selector("html[data-ready]")
        return tab

    yield show
    for tab in seen:
        for event, listener in listeners.items():
            tab.remove_listener(event, listener)
    assert trouble == []


def _allowed(url):
    return url.startswith(("file://", "data:"))
