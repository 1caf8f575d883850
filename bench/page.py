"""The trace page with a large trace in Chromium: how long it loads, what a step and a hover cost.

    python -m bench.page [--positions 512] [--json]

One token a step, so there are as many steps as positions, and random logits, so that every guess
changes in every step: no real run asks more of the page. Needs the extra `dev` and a chromium.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Page, sync_playwright
from torch import Tensor

import unmask
from unmask.page.build import TraceFile, page, write
from unmask.trace import Tracer

VOCABULARY, STRIDE, ROUNDS = 1000, 8, 3
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]


def trace(path: Path, positions: int) -> None:
    """A run over random logits, written to a file."""
    noise = torch.randn(positions, VOCABULARY, generator=torch.Generator().manual_seed(0)) * 3

    def logits(ids: Tensor) -> Tensor:
        step = int((ids != 0).sum())
        return (noise + 0.5 * noise.roll(step, -1)).expand(len(ids), -1, -1)

    model = unmask.from_function(logits, mask_id=0, vocab_size=VOCABULARY, eos_id=1)
    rule = unmask.Rule.parse("confidence | swd(5) | top(1)")
    request = unmask.infill_request(model.spec, [0] * positions, unmask.Settings(rule))
    with path.open("wb") as stream:
        tracer = Tracer(stream, model.spec, request)
        for step in unmask.decode_steps(model, [request], keep_logits=True):
            tracer.see(step)
            for result in step.finished:
                tracer.close(result)


STEPS = """async (stride) => {
  const slider = document.querySelector("#bar input");
  for (let step = 1; step <= slider.max; step += stride) {
    slider.value = step;
    slider.dispatchEvent(new Event("input"));
    await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
  }
  return Math.ceil(slider.max / stride);
}"""
HOVERS = """async (stride) => {
  const chips = [...document.querySelectorAll(".chip")].filter((_, i) => i % stride === 0);
  for (const chip of chips) {
    chip.dispatchEvent(new PointerEvent("pointerover", { bubbles: true, pointerType: "mouse" }));
    await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
  }
  return chips.length;
}"""


def cost(tab: Page, code: str) -> float:
    """Milliseconds of the page's main thread for each of what `code` does."""
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def busy() -> float:
        metrics: list[dict[str, Any]] = session.send("Performance.getMetrics")["metrics"]
        return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))

    before = busy()
    count = tab.evaluate(code, STRIDE)
    return 1000 * (busy() - before) / float(count)


def measured(positions: int) -> dict[str, float]:
    """The best of some rounds."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file, html = Path(folder) / "large.trace", Path(folder) / "large.html"
        trace(file, positions)
        begin = time.perf_counter()
        write(page([TraceFile.read(file)]), html)
        figures = {"trace, MB": file.stat().st_size / 1e6, "build, s": time.perf_counter() - begin}
        figures |= {"load, s": float("inf"), "step, ms": float("inf"), "hover, ms": float("inf")}
        where = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=where, args=ARGUMENTS)
        for _ in range(ROUNDS):
            tab = browser.new_page(viewport={"width": 1280, "height": 900})
            begin = time.perf_counter()
            tab.goto(html.as_uri())
            tab.wait_for_selector("html[data-ready]")
            took = time.perf_counter() - begin
            new = {"load, s": took, "step, ms": cost(tab, STEPS), "hover, ms": cost(tab, HOVERS)}
            figures |= {name: min(figures[name], figure) for name, figure in new.items()}
            tab.close()
        browser.close()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--positions", type=int, default=512)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measured(options.positions)
    if options.json:
        print(json.dumps(figures))
        return
    print(f"{options.positions} positions, {options.positions} steps")
    for name, figure in figures.items():
        print(f"{name:12} {figure:8.2f}")


if __name__ == "__main__":
    main()
