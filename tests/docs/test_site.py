"""The site has every page once, and its reference names what exists."""

from __future__ import annotations

import re
from importlib import import_module

from tests.paths import ROOT

DOCS = ROOT / "docs"
NAV = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]


def test_every_page_is_in_the_navigation_once():
    listed = re.findall(r"([\w-]+\.md)$", NAV, re.MULTILINE)
    assert sorted(listed) == sorted(["index.md", *(page.name for page in DOCS.glob("*.md"))])


def test_the_readme_links_every_page():
    readme = (ROOT / "README.md").read_text()
    assert [page.name for page in DOCS.glob("*.md") if f"](docs/{page.name})" not in readme] == []
    assert len(readme.splitlines()) < 120


def test_the_reference_names_what_exists():
    names = re.findall(r"^::: ([\w.]+)$", (DOCS / "api.md").read_text(), re.MULTILINE)
    assert len(names) > 20
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert getattr(import_module(module), attribute).__doc__, name
