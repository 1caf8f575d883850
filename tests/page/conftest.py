"""Traces of real runs, and a browser to look at their pages with."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from page_runs import PROMPT, RUNS

from unmask.cli import main
from unmask.page.build import TraceFile, page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


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


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """One Chromium for all tests of a process."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def show(browser, tmp_path):
    """Opens traces in a new tab; at the end nothing may have gone wrong in it."""
    contexts, trouble = [], []

    def allowed(request) -> bool:
        return request.url.startswith(("file://", "data:"))

    def show(*files, wide=True, theme="light", data=(), **options):
        size = {"width": 1280, "height": 900} if wide else {"width": 360, "height": 740}
        context = browser.new_context(viewport=size, color_scheme=theme, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: trouble.append(message.text))
        tab.on("pageerror", lambda error: trouble.append(str(error)))
        tab.on("request", lambda sent: None if allowed(sent) else trouble.append(sent.url))
        file = tmp_path / f"page-{len(contexts)}.html"
        found = [TraceFile.read(path) for path in files] + list(data)
        file.write_text(page(found), encoding="utf-8")
        tab.goto(file.as_uri())
        tab.wait_for_selector("html[data-ready]")
        return tab

    yield show
    for context in contexts:
        context.close()
    assert trouble == []
