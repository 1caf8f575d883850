"""Copies the short page of an arena and its plots into the docs.

python tools/arena_page.py build/arena docs
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path


def copy(arena: Path, docs: Path) -> None:
    """Copy arena.md and the plots that it shows; older plots of the arena go."""
    page = (arena / "arena.md").read_text(encoding="utf-8")
    for old in (docs / "img").glob("arena-*.svg"):
        old.unlink()
    for name in re.findall(r"\]\((img/arena-[^)]+\.svg)\)", page):
        shutil.copy(arena / name, docs / name)
    title, _, rest = page.partition("\n")
    note = "`make arena` makes this page on the embedded model; nothing here is written by hand."
    (docs / "arena.md").write_text(f"{title}\n\n{note}\n{rest}", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arena", type=Path)
    parser.add_argument("docs", type=Path)
    arguments = parser.parse_args()
    copy(arguments.arena, arguments.docs)
