"""docs/explain.md and docs/figure.md show what the commands print: they are run, and compared."""

import re
import shlex

from tests.paths import ROOT
from unmask.cli import main


def commands(page):
    """Every command of the page with the output that it shows."""
    text = (ROOT / "docs" / page).read_text()
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, shown = re.fullmatch(
                r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL
            ).groups()
            yield shlex.split(command.replace("\\\n", " ")), shown


def names_of(page, capsys):
    """Run the commands of the page and compare what they print; returns their names."""
    for (program, *arguments), shown in commands(page):
        assert program == "unmask"
        assert main(arguments) == 0
        assert capsys.readouterr().out == shown
        yield arguments[0]


def test_the_pages_of_explain_and_figure_show_what_the_commands_print(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    assert list(names_of("explain.md", capsys)) == ["run", "run", "explain", "explain"]
    assert main(["explain", "eb.trace", "--position", "32"]) == 0
    assert "was 0.427 at step 13" in capsys.readouterr().out  # as explain.md says
    assert list(names_of("figure.md", capsys)) == ["run", "run", "figure", "figure"]
    for name in ("commitment", "pipeline"):
        assert (tmp_path / f"{name}.svg").stat().st_size
