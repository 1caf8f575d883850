"""docs/architecture.md and CONTRIBUTING.md name what exists, and their lists are short."""

import ast
import re

import pytest

from tests.paths import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
WALKS = [name for name in SECTIONS if not name.startswith("Read")]
MOST = {"`unmask run PROMPT`": 25}


def lines_of(section):
    return re.findall(r"^\d+\. `([\w/]+\.py)(?::(\w+))?`", SECTIONS[section], re.MULTILINE)


def names_in(path):
    tree = ast.parse((ROOT / "src" / "unmask" / path).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


@pytest.mark.parametrize("section", WALKS)
def test_a_walk_names_functions_that_exist(section):
    hops = lines_of(section)
    assert 10 <= len(hops) <= MOST.get(section, 15)
    assert len(hops) == len(re.findall(r"^\d+\.", SECTIONS[section], re.MULTILINE))
    for path, name in hops:
        assert name in names_in(path), f"{path} has no {name}"


def test_decoding_is_understood_from_12_files_and_1600_lines():
    files = [path for path, _ in lines_of("Read these to understand decoding")]
    assert len(files) <= 12
    counts = {path: len((ROOT / "src/unmask" / path).read_text().splitlines()) for path in files}
    assert sum(counts.values()) <= 1600, counts


def test_contributing_says_in_ten_lines_where_every_folder_is():
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("## Where things are")[2]
    layout = text.split("```")[1].strip()
    folders = {path.parent.name for path in (ROOT / "src" / "unmask").glob("*/__init__.py")}
    assert folders <= set(re.findall(r"(\w+)/", layout))
    assert len(layout.splitlines()) <= 10
