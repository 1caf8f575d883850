"""Which edits of a file make another version of a part, and which do not."""

from __future__ import annotations

import pytest

from unmask.rules.fingerprint import code_of, sources_of
from unmask.rules.rule import Rule

FILE = '''
"""Parts of mine."""
from math import exp, log
import unmask
import torch as t

RATE = 0.5
OTHER = 3
TABLE = {}
TABLE["a"] = 1


def helper(x):
    """Helps."""
    return x * RATE


@unmask.score
def mine(view):
    """A score."""
    other = helper(view.confidence) * TABLE["a"]  # local, not the part below
    return unmask.Scores.probability(other)


@unmask.selection
def other(view, scores, k: int = OTHER):
    return view.masked & (scores.key > log(k))
'''


def edited(old, new):
    assert old in FILE
    return FILE.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""A score."""', '"""Another description."""'),
        ('    """Helps."""\n', ""),
        ("  # local, not the part below", "  # a remark"),
        ('TABLE["a"]  #', "TABLE[\n        'a'\n    ]  #"),
        ('"""Parts of mine."""', "# no docstring"),
        ("log(k)", "log(k + 1)"),
        ("OTHER = 3", "OTHER = 4"),
        ("from math import exp, log", "from math import exp, cos, log"),
        ("@unmask.selection\n", "unmask.score(len)\n\n\n@unmask.selection\n"),
    ],
)
def test_comments_docstrings_format_and_other_parts_are_not_its_code(old, new):
    assert code_of(edited(old, new), "mine") == code_of(FILE, "mine")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("* TABLE", "+ TABLE"),
        ("return x * RATE", "return x + RATE"),
        ("RATE = 0.5", "RATE = 0.6"),
        ('TABLE["a"] = 1', 'TABLE["a"] = 2'),
        ("import unmask\n", "import unmask as unmask_, numpy as unmask\n"),
        ("@unmask.score\n", "@unmask.score(needs=unmask.Needs())\n"),
    ],
)
def test_its_code_and_what_it_uses_of_its_file_are(old, new):
    assert code_of(edited(old, new), "mine") != code_of(FILE, "mine")


def test_a_default_of_a_knob_is_code_of_its_part_alone():
    assert code_of(edited("OTHER = 3", "OTHER = 4"), "other") != code_of(FILE, "other")
    assert code_of(edited("RATE = 0.5", "RATE = 0.6"), "other") == code_of(FILE, "other")


def test_a_part_that_a_function_makes_depends_on_the_whole_file():
    made = "make.<locals>.inner"
    assert code_of(edited("RATE = 0.5", "RATE = 0.6"), made) != code_of(FILE, made)
    assert code_of(edited('"""Helps."""', '"""It helps."""'), made) == code_of(FILE, made)


def test_a_file_that_is_no_python_any_more_is_read_as_text():
    assert code_of("def (", "mine") != code_of("def ((", "mine")


def test_a_rule_of_our_parts_alone_has_no_foreign_source():
    assert sources_of(Rule.parse("credit(0.65) | confidence | swd(5) | eb(0.1) | floor(1)")) == ""


def test_a_rule_has_the_fingerprint_of_all_its_own_parts(tmp_path):
    from unmask.rules.plugins import import_parts

    (tmp_path / "parts_of_mine.py").write_text(FILE)
    import_parts(str(tmp_path / "parts_of_mine.py"))
    texts = ("mine | eb(0.1)", "confidence | other(2)", "mine | other(2)", "mine | eb(2)")
    one, two, both, again = (sources_of(Rule.parse(text)) for text in texts)
    assert len({one, two, both, ""}) == 4
    assert again == one
