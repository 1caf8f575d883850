"""Hooks of `make docs`: README.md is the start page, the notebooks become pages, and links out of
docs/ become plain text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[1]
README, NOTEBOOKS = ROOT / "README.md", ROOT / "examples" / "notebooks"


def on_files(files: Files, config: Any) -> Files:
    """Add README.md as index.md, with links as seen from docs/."""
    from mkdocs.structure.files import File

    text = re.sub(
        r"\[docs/|\]\(docs/", lambda part: part[0][:-5], README.read_text(encoding="utf-8")
    )
    text = text.replace("](examples/notebooks)", "](notebooks/first-steps.md)")
    text = re.sub(r"\[([^\]]*)\]\((?!img/|[\w/-]+\.md|http)[^)]*\)", r"`\1`", text)
    text = re.sub(r"\[((?:CONTRIBUTING|CHANGELOG|SECURITY)\.md)\]\([^)]*\)", r"`\1`", text)
    files.append(File.generated(config, "index.md", content=text))
    for file in NOTEBOOKS.glob("*.ipynb"):
        page = notebook_page(json.loads(file.read_text(encoding="utf-8")))
        files.append(File.generated(config, f"notebooks/{file.stem}.md", content=page))
    return files


def notebook_page(notebook: dict[str, Any]) -> str:
    """A notebook as Markdown: its texts, its code, and what the code printed."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            printed = "".join(output.get("text") or output["data"]["text/plain"])
            parts.append(f"```text\n{printed.rstrip()}\n```")
    return "\n\n".join(parts)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page as MkDocs reads it: no folder above docs/, and bars in code without a backslash.

    GitHub needs `\\|` for a bar in a table's code. MkDocs would show the backslash.
    """
    inside = re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"\1", markdown)
    return re.sub(r"`[^`\n]*`", lambda code: code[0].replace("\\|", "|"), inside)
