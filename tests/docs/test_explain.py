"""docs/explain.md is what the program says: its commands are run, its output compared."""

import re
import shlex

from tests.paths import ROOT
from unmask.cli import main

PAGE = ROOT / "docs" / "explain.md"


def commands():
    """Every command of the page with the output that it shows."""
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, shown = re.fullmatch(
                r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL
            ).groups()
            yield shlex.split(command.replace("\\\n", " ")), shown


def test_the_page_of_explain_shows_what_the_commands_print(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    names = []
    for (program, *arguments), shown in commands():
        assert program == "unmask"
        assert main(arguments) == 0
        assert capsys.readouterr().out == shown
        names.append(arguments[0])
    assert names == ["run", "run", "explain", "explain", "explain", "figure", "figure"]
    for name in ("commitment", "pipeline"):
        assert (tmp_path / f"{name}.svg").stat().st_size
