"""Settings that every test shares."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

from unmask import parts

torch.set_num_threads(1)
settings.register_profile("unmask", deadline=None, derandomize=True, database=None, max_examples=15)
settings.load_profile("unmask")


@pytest.fixture
def clean_table() -> Iterator[None]:
    """Whatever a test registers is forgotten after it."""
    parts.kinds()
    before = dict(parts.TABLE)
    yield
    parts.TABLE.clear()
    parts.TABLE.update(before)


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update",
             "--disable-sync"]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """A Chromium; not longer than a module, because its event loop would be in others' way."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()
