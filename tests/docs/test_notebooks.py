"""The notebooks run, and print what they show."""

from __future__ import annotations

import builtins
import re
import sys
from contextlib import contextmanager

import nbformat
import pytest
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from tests.new_process import inside, new_process
from tools.notebooks import FOLDER, printed


def rounded(texts):
    """What was printed, without blanks and without the digits of numbers that are rounding."""
    return [re.sub(r"\d\S*e-\d+", "tiny", " ".join(text.split())) for text in texts]


@contextmanager
def shell_of_its_own():
    """IPython's shell, which a kernel has too, in this process."""
    before, displayed = set(vars(builtins)), sys.displayhook
    shell = InteractiveShell.instance()
    try:
        yield shell
    finally:
        InteractiveShell.clear_instance()
        sys.displayhook = displayed
        for name in set(vars(builtins)) - before:
            delattr(builtins, name)


def executed(notebook):
    """What each cell prints and returns."""
    with shell_of_its_own() as shell:
        for cell in notebook.cells:
            with capture_output() as captured:
                if cell.cell_type == "code":
                    shell.run_cell(cell.source, store_history=True).raise_error()
            values = (each.data.get("text/plain", "") for each in captured.outputs)
            yield captured.stderr + captured.stdout + "".join(values)


@pytest.mark.long
def test_the_notebooks_print_what_they_show(tmp_path, monkeypatch):
    monkeypatch.setattr(HistoryManager, "enabled", False)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)  # IPython warns if it is another one
    names = sorted(file.stem for file in FOLDER.glob("*.ipynb"))
    assert names == ["first-steps", "own-rule", "read-a-trace"]
    for name in names:
        shown = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
        with new_process(), inside(tmp_path):
            assert rounded(executed(shown)) == rounded(printed(shown)), name
