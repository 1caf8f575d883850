"""Writes docs/embedded-tables.md from docs/embedded.json (see train/table.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from unmask.lab.stats import paired, star_rule, starred

BEGIN, END = "<!-- measured: python tools/pages.py -->", "<!-- end -->"
Cell = dict[str, Any]
Key = tuple[Any, ...]


def measured(page: str, results: Path) -> str:
    """The page with a new measured part."""
    return between(page, _parts(json.loads(results.read_text(encoding="utf-8"))))


def between(page: str, lines: Iterable[str]) -> str:
    """The page with these lines between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{chr(10).join(lines)}\n{END}{after}"


def _parts(results: dict[str, Any]) -> Iterator[str]:
    tasks = results["tasks"]
    yield "\n## Accuracy by task\n"
    yield from _by_task(tasks)
    words = tasks["words"]
    series = words["series"]
    size = f"{series['count']} word problems, {series['length']} tokens"
    yield f"\n## The paper's settings on {size}\n"
    gains = _gains(words["cells"])
    yield "Accuracy % @ forwards, and the paired difference to lam 0 in points. Bold:"
    yield f"{star_rule(len(gains))} of these tables."
    yield from _panels(words["cells"], gains)
    yield "\n## How SWD starts\n"
    yield from _starts(results["starts"])
    yield "\n## Gamma sweep\n"
    yield "EB-Sampler on confidence, full window: accuracy % @ forwards.\n"
    yield from _sweep(words["cells"], results["gammas"])


def _by_task(tasks: dict[str, Any]) -> Iterator[str]:
    """Confidence, one token per forward in blocks and in the full window, and EB."""
    columns = (
        ("top-1, block 16", "top(1)", 16, 0.0),
        ("top-1, full", "top(1)", None, 0.0),
        ("EB 0.1, block 16", "eb(0.1)", 16, 0.0),
        ("EB 0.1, full", "eb(0.1)", None, 0.0),
        ("EB 0.1 + SWD 5, full", "eb(0.1)", None, 5.0),
        ("EB 1, full", "eb(1)", None, 0.0),
        ("EB 1 + SWD 5, full", "eb(1)", None, 5.0),
    )
    count = tasks["words"]["series"]["count"]
    yield f"Accuracy % @ forwards by confidence, EOS kept, {count} problems of each task.\n"
    yield f"| task | tokens | {' | '.join(title for title, *_ in columns)} |"
    yield f"|---|---|{'---|' * len(columns)}"
    for task, result in tasks.items():
        cells = {_key(cell): cell for cell in result["cells"]}
        shown = [
            _figure(cells[("confidence", lam, selection, block, "keep")])
            for _, selection, block, lam in columns
        ]
        yield f"| {task} | {result['series']['length']} | {' | '.join(shown)} |"


def _starts(tasks: dict[str, Any]) -> Iterator[str]:
    """Every rule without SWD, and with each start of it."""
    starts = ("uniform", "single", "skip")
    yield "Accuracy % @ forwards over the full window: lam 0, and lam 5 with each start of `swd`."
    yield "The number of tokens is that of the first table.\n"
    yield f"| task, rule | lam 0 | {' | '.join(starts)} |"
    yield f"|---|---|{'---|' * len(starts)}"
    for task, result in tasks.items():
        by_rule = {cell["rule"]: cell for cell in result["cells"]}
        for rule, cell in by_rule.items():
            if cell["lam"]:
                continue
            score, selection = rule.split(" | ")
            named = (f"{score} | {_swd(start)} | {selection}" for start in starts)
            shown = " | ".join(_figure(by_rule[name]) for name in named)
            yield f"| {task}, {score}, {selection} | {_figure(cell)} | {shown} |"


def _swd(start: str) -> str:
    return "swd(5)" if start == "uniform" else f"swd(5, start={start})"


def _panels(cells: Sequence[Cell], gains: dict[Key, str]) -> Iterator[str]:
    by_key = {_key(cell): cell for cell in cells}
    listed = [cell for cell in cells if _in_table(cell)]
    lams = sorted({cell["lam"] for cell in listed})
    for block, eos in dict.fromkeys((cell["block"], cell["eos"]) for cell in listed):
        window = "Full window" if block is None else f"Blocks of {block}"
        yield f"\n### {window}, eos={eos}\n"
        yield f"| rule | {' | '.join(f'lam {lam:g}' for lam in lams)} |"
        yield f"|---|{'---|' * len(lams)}"
        for cell in listed:
            if (cell["block"], cell["eos"], cell["lam"]) != (block, eos, 0.0):
                continue
            rest = cell["selection"], block, eos
            row = [by_key[(cell["score"], lam, *rest)] for lam in lams]
            shown = [_figure(cell), *(f"{_figure(c)} ({gains[_key(c)]})" for c in row[1:])]
            yield f"| {cell['score']}, {cell['selection']} | {' | '.join(shown)} |"


def _in_table(cell: Cell) -> bool:
    return cell["selection"] in (
        "eb(0.1)", "eb(0.5)", "eb(1)", "threshold", "top(1)", "top(2)", "top(4)"
    )  # fmt: skip


def _sweep(cells: Sequence[Cell], gammas: Sequence[str]) -> Iterator[str]:
    by_key = {_key(cell): cell for cell in cells}
    yield f"| curve | {' | '.join(f'gamma {gamma}' for gamma in gammas)} |"
    yield f"|---|{'---|' * len(gammas)}"
    curves = [(f"lam {lam:g}", lam, None, "keep") for lam in (0.0, 1.0, 5.0, 15.0)]
    curves += [
        ("lam 0, EOS suppressed", 0.0, None, "suppress"),
        ("lam 0, blocks of 16", 0.0, 16, "keep"),
    ]
    for title, lam, block, eos in curves:
        row = [by_key[("confidence", lam, f"eb({gamma})", block, eos)] for gamma in gammas]
        yield f"| {title} | {' | '.join(map(_figure, row))} |"


def _key(cell: Cell) -> Key:
    return cell["score"], cell["lam"], cell["selection"], cell["block"], cell["eos"]


def _figure(cell: Cell) -> str:
    return f"{100 * cell['accuracy']:.1f} @ {cell['nfe']:.1f}"


def _gains(cells: Sequence[Cell]) -> dict[Key, str]:
    """The difference of every cell of the tables to lam 0, bold where it has a star."""
    by_key = {_key(cell): cell for cell in cells}
    compared = [cell for cell in cells if _in_table(cell) and cell["lam"]]
    pairs = []
    for cell in compared:
        base = by_key[_key({**cell, "lam": 0.0})]
        pairs.append(paired(*([c == "1" for c in each["solved"]] for each in (base, cell))))
    gains = {}
    for cell, pair, has_star in zip(
        compared, pairs, starred([pair.p for pair in pairs]), strict=True
    ):
        text = f"{100 * pair.difference:+.1f}"
        gains[_key(cell)] = f"**{text}**" if has_star else text
    return gains
