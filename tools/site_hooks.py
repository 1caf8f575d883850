"""Hooks of `make docs`: README.md is the start page, and links out of docs/ become plain text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

README = Path(__file__).parents[1] / "README.md"


def on_files(files: Files, config: Any) -> Files:
    """Add README.md as index.md, with links as seen from docs/."""
    text = re.sub(r"\]\(docs/", "](", README.read_text(encoding="utf-8"))
    text = re.sub(r"\[([^\]]*)\]\((?!img/|[\w-]+\.md|http)[^)]*\)", r"`\1`", text)
    text = re.sub(r"\[((?:CONTRIBUTING|CHANGELOG|SECURITY)\.md)\]\([^)]*\)", r"`\1`", text)
    files.append(File.generated(config, "index.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The site has no folder above docs/."""
    return re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"\1", markdown)
