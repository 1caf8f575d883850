"""Draws docs/img/*.png in Chromium: pages and the playground with runs of the embedded model.

python tools/screenshots.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from unmask.cli import main

IMAGES = Path(__file__).parents[1] / "docs" / "img"
PROMPT = "Ann has 12 pens. She buys 3, then loses 5. How many now?"
RUNS = {"swd": "confidence | swd(5) | eb(0.1)", "eb": "confidence | eb(0.1)"}
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
MOST = 250_000  # bytes


def draw(folder: Path) -> None:
    """Draw all pictures from traces that are written to `folder`."""
    traces = {name: folder / f"{name}.trace" for name in RUNS}
    for name, rule in RUNS.items():
        main(["run", PROMPT, "--rule", rule, "--length", "24", "--trace", str(traces[name])])
    files = folder / "one.html", folder / "two.html"
    main(["page", str(traces["swd"]), "-o", str(files[0])])
    main(["page", str(traces["eb"]), str(traces["swd"]), "-o", str(files[1])])
    one, two = (file.as_uri() for file in files)
    with _chromium() as browser:
        for theme in ("light", "dark"):
            with _tab(browser, one, 1280, 860, color_scheme=theme) as tab:
                _show(tab, step=6, position=29)
                _save(tab, f"page-{theme}")
        with _tab(browser, two, 1280, 900) as tab:
            _show(tab, step=6, position=29)
            _save(tab, "page-compare")
        with _tab(browser, one, 360, 780, is_mobile=True, has_touch=True) as tab:
            _show(tab, step=6, position=29)
            _save(tab, "page-phone")
        with _serving() as address, _tab(browser, address, 1280, 1060) as tab:
            tab.fill("#length", "24")
            tab.click("#run")
            tab.wait_for_selector(".downloads a")
            tab.click("h1")
            tab.keyboard.press("Home")
            _show(tab, step=6, position=29)
            _save(tab, "playground")


@contextmanager
def _chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def _serving() -> Iterator[str]:
    """The address of a server of the embedded model."""
    command = [sys.executable, "-m", "unmask", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = next(line for line in server.stderr if "http://" in line)
        yield said[said.index("http://") :].strip()
        server.terminate()


@contextmanager
def _tab(browser: Browser, address: str, width: int, height: int, **more: Any) -> Iterator[Page]:
    size: Any = {"width": width, "height": height}
    context = browser.new_context(viewport=size, device_scale_factor=2, **more)
    tab = context.new_page()
    tab.goto(address)
    tab.wait_for_selector("html[data-ready]")
    yield tab
    context.close()


def _show(tab: Page, step: int, position: int) -> None:
    for _ in range(step):
        tab.keyboard.press("ArrowRight")
    tab.locator(f".chip[data-position='{position}']").last.click()
    tab.mouse.move(2, 2)
    tab.evaluate("() => { document.activeElement.blur(); scrollTo(0, 0); }")
    tab.wait_for_timeout(200)


def _save(tab: Page, name: str) -> None:
    """Save with 256 colours: a page has few others, only in soft edges."""
    picture = Image.open(BytesIO(tab.screenshot())).convert("RGB")
    few = picture.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    file = IMAGES / f"{name}.png"
    few.save(file, optimize=True)
    assert file.stat().st_size < MOST, f"{file} has {file.stat().st_size} bytes"


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        draw(Path(folder))
