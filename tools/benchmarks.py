"""Writes docs/benchmarks-tables.md from docs/benchmarks.json (see bench/all.py)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from figures import between


def benchmarks(page: str, results: Path) -> str:
    """The page with a new measured part."""
    return between(page, _parts(json.loads(results.read_text(encoding="utf-8"))))


def _parts(results: dict[str, Any]) -> Iterator[str]:
    for bench in results["benches"]:
        yield f"\n## {bench['title']}\n"
        yield f"{bench['about']}\n"
        yield f"`{bench['command']}`, {bench['seconds']:.0f} s. {_machine(bench['environment'])}\n"
        yield from _table(bench)


def _machine(here: dict[str, Any]) -> str:
    commit = f", commit {here['commit']}" if here["commit"] else ""
    return (
        f"{here['device']}, {here['cores']} cores, load {here['load']:.1f}, "
        f"Python {here['python']}, torch {here['torch']}, unmask {here['unmask']}{commit}."
    )


def _table(bench: dict[str, Any]) -> Iterator[str]:
    columns, rows = bench["columns"], bench["rows"]
    words = [any(isinstance(row.get(c["key"]), str) for row in rows) for c in columns]
    yield f"| {' | '.join(c['title'] for c in columns)} |"
    yield f"|{'|'.join('---' if left else '---:' for left in words)}|"
    for row in rows:
        yield f"| {' | '.join(_cell(c, row.get(c['key'])) for c in columns)} |"


def _cell(column: dict[str, str], value: Any) -> str:
    text = "" if value is None else f"{value:{column['form']}}{column['unit']}"
    return text.replace("|", "\\|")
