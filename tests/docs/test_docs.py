"""The documents are true: their examples run, and what is generated is up to date."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests import forked
from tests.paths import ROOT
from unmask.cli import COMMANDS, parser

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


# Imports torch once, then runs each page in a fork of its own.
FORKS = """
import json, os, sys, traceback
import unmask.cli, torch
failed = []
for page, folder, program in json.load(sys.stdin):
    if not (child := os.fork()):
        try:
            sys.path.insert(0, folder)
            exec(compile(program, page, "exec"), {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        failed.append(page)
sys.exit(f"failed: {failed}" if failed else 0)
"""


@pytest.mark.long
def test_the_python_examples_run(tmp_path):
    programs = []
    for page in PAGES:
        folder = tmp_path / page.stem
        folder.mkdir()
        examples = blocks(page, "python")
        for example in examples:  # one that begins with a file's name becomes that file
            if match := re.match(r"# (\w+\.py)\n", example):
                (folder / match[1]).write_text(example)
        program = "\n".join(e for e in examples if not re.match(r"# \w+\.py\n", e))
        programs.append((page.name, str(folder), program))
    assert sum(bool(program) for _, _, program in programs) > 5
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKS],
        input=json.dumps(programs),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_the_extension_of_the_docs_works_on_the_command_line_through_an_entry_point(tmp_path):
    module = next(b for b in blocks(ROOT / "docs/extending.md", "python") if "# my_rules.py" in b)
    (tmp_path / "my_rules.py").write_text(module)
    info = tmp_path / "my_rules-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-rules\nVersion: 1\n")
    toml = next(b for b in blocks(ROOT / "docs/extending.md", "toml"))
    assert '"unmask.parts"' in toml
    (info / "entry_points.txt").write_text("[unmask.parts]\nmy_rules = my_rules\n")
    arguments = ("-m", "unmask", "rules", "confidence | sure_prefix(0.9)")
    done = forked.run(*arguments, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.stderr == ""
    assert "up to and including the first position that is not sure." in " ".join(
        done.stdout.split()
    )


def test_the_extension_of_the_docs_is_short():
    module = next(b for b in blocks(ROOT / "docs/extending.md", "python") if "# my_rules.py" in b)
    code = module[module.index("@unmask.selection") :].strip().splitlines()
    assert len(code) <= 15


@pytest.mark.long
def test_a_broken_plug_in_is_named_in_one_line(tmp_path):
    info = tmp_path / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[unmask.parts]\nbroken = no_such_module\n")
    arguments = ("-m", "unmask", "rules", "confidence | top(1)")
    done = forked.run(*arguments, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 2
    assert "the plug-in 'broken' (no_such_module) cannot be imported" in done.stderr
    assert done.stderr.count("\n") == 1


def words(text):
    """A help text without its layout, which Python 3.13 changed: `-o FILE, --output FILE`."""
    return " ".join(re.sub(r"(-\w) [A-Z]+, --", r"\1, --", text).split())


def test_the_command_line_page_is_what_help_says(monkeypatch):
    monkeypatch.setenv("COLUMNS", "96")
    page = words((ROOT / "docs" / "cli.md").read_text())
    top = parser()
    assert words(top.format_help()) in page
    commands = next(action for action in top._actions if action.dest == "command").choices
    for name in COMMANDS:
        assert words(commands[name].format_help()) in page


def test_the_rules_page_lists_every_part():
    from unmask.rules.registry import kinds

    page = (ROOT / "docs" / "rules.md").read_text()
    for kind in kinds():
        if kind.target.__module__.startswith("unmask."):
            assert f"`{kind.usage}`" in page
            assert kind.summary in page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_the_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target
