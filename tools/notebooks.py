"""Runs the notebooks of examples/notebooks and stores what they print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"


def executed(file: Path, folder: Path) -> Any:
    """The notebook after a run in a new kernel; `folder` is where the kernel writes its files."""
    notebook = nbformat.read(file, as_version=4)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        cell.pop("outputs", None)
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}})
    client.record_timing, client.coalesce_streams = False, True
    return client.execute()


def printed(notebook: Any) -> list[str]:
    """What each code cell printed and returned, as plain text."""
    texts = []
    for cell in notebook.cells:
        outputs = cell.get("outputs", []) if cell.cell_type == "code" else []
        parts = (each.get("text") or each.get("data", {}).get("text/plain", "") for each in outputs)
        texts.append("".join(parts))
    return texts


def main() -> None:
    """Run every notebook and write it back."""
    for file in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(executed(file, FOLDER), file)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
