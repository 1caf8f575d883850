"""docs/sglang.md shows what the commands print."""

import re
import shlex
from pathlib import Path

from tests.paths import ROOT
from unmask.cli import main

PAGE = ROOT / "docs" / "sglang.md"


def test_the_page_of_sglang_shows_what_the_commands_print(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL)
    programs = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        program, *arguments = shlex.split(command)
        programs.append(program)
        if program == "cat":
            assert Path(arguments[0]).read_text() == shown
            continue
        assert main(arguments) == 0
        assert capsys.readouterr().out == shown
    assert programs == ["unmask", "cat"]
