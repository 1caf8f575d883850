"""Copies the short page of an arena and its plots into the docs, with the long tables apart.

python tools/arena_page.py build/arena docs
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

NOTE = "`make arena` makes this page on the embedded model; nothing here is written by hand."
TABLES = (
    "[arena-tables.md](arena-tables.md) has the settings of each front, every rule, and what each "
    "choice changes in each field. [dissect.md](dissect.md) asks what SWD and the EOS policies do "
    "for one rule, on 200 examples."
)


def copy(arena: Path, docs: Path) -> None:
    """Write arena.md and arena-tables.md, and copy the plots; older plots of the arena go."""
    page = (arena / "arena.md").read_text(encoding="utf-8")
    for old in (docs / "img").glob("arena-*.svg"):
        old.unlink()
    for name in re.findall(r"\]\((img/arena-[^)]+\.svg)\)", page):
        shutil.copy(arena / name, docs / name)
    short, tables = divide(page)
    (docs / "arena.md").write_text(short, encoding="utf-8")
    (docs / "arena-tables.md").write_text(tables, encoding="utf-8")


def divide(page: str) -> tuple[str, str]:
    """The page without the tables of the fronts and of the rules, and a page of these tables."""
    title, _, rest = page.partition("\n")
    before, fronts_title, rest = rest.partition("## The front of each task\n")
    fronts, rules_title, rest = rest.partition("## The rules\n")
    best, bold, front_tables = fronts.partition("**")
    rules, plot, plots = rest.partition("![")
    short = f"{title}\n\n{NOTE}\n{before}{fronts_title}{best}{TABLES}\n\n{plot}{plots}"
    heading = f"{title}: tables\n\n{NOTE} [arena.md](arena.md) explains them."
    tables = f"{heading}\n\n{fronts_title}\n{bold}{front_tables}{rules_title}{rules.rstrip()}\n"
    return short, tables


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arena", type=Path)
    parser.add_argument("docs", type=Path)
    arguments = parser.parse_args()
    copy(arguments.arena, arguments.docs)
