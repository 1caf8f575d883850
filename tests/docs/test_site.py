"""The site has every page once, and its reference names what exists."""

from __future__ import annotations

import re

import unmask
from tests.paths import ROOT
from tools.site_hooks import on_page_markdown

DOCS = ROOT / "docs"
LONG = {  # references and tables, in which one looks things up
    "rules.md", "semantics.md", "arena-tables.md", "benchmarks-tables.md", "embedded-tables.md",
}  # fmt: skip
NAV = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]


def test_every_page_is_in_the_navigation_once():
    listed = re.findall(r"([\w/-]+\.md)$", NAV, re.MULTILINE)
    pages = ["index.md", *(page.name for page in DOCS.glob("*.md"))]
    notebooks = (ROOT / "examples" / "notebooks").glob("*.ipynb")
    assert sorted(listed) == sorted([*pages, *(f"notebooks/{each.stem}.md" for each in notebooks)])


def test_a_page_has_at_most_1500_words_unless_it_is_a_reference():
    for page in DOCS.glob("*.md"):
        prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        words = [word for word in prose.split() if re.search(r"\w", word)]  # no table's bars
        assert len(words) <= 1500 or page.name in LONG, (page.name, len(words))


def test_the_readme_links_every_page():
    readme = (ROOT / "README.md").read_text()
    assert [page.name for page in DOCS.glob("*.md") if f"](docs/{page.name})" not in readme] == []
    assert len(readme.splitlines()) < 120


def test_the_reference_has_every_public_name_with_its_docstring():
    names = re.findall(r"^::: unmask\.(\w+)$", (DOCS / "api.md").read_text(), re.MULTILINE)
    assert sorted(names) == sorted(set(unmask.__all__) - {"__version__"})
    assert [name for name in names if not getattr(unmask, name).__doc__] == []


def test_a_rule_in_a_table_of_the_site_can_be_copied():
    for page in DOCS.glob("*.md"):
        shown = on_page_markdown(page.read_text())
        assert not re.findall(r"`[^`\n]*\\\|[^`\n]*`", shown), page.name
    assert "`confidence | top(1)`" in on_page_markdown(r"| `confidence \| top(1)` | 1 |")


def test_code_on_the_page_of_rules_is_well_formed():
    lines = (DOCS / "rules.md").read_text().splitlines()
    assert [line for line in lines if "``" in line and not line.startswith("```")] == []
