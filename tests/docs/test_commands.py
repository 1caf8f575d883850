"""Commands of the documents run as they stand; what coming-from*.md maps is what is replayed."""

from __future__ import annotations

import json
import re
import shlex
import sys

import pytest

from tests.paths import ROOT
from unmask.cli import main
from unmask.conformance.cases import KnownDifference, NotOffered, plan_of
from unmask.embedded import PROMPTS
from unmask.rules.registry import Bound, kind_named, kind_of
from unmask.rules.rule import Rule

GOLDEN = ROOT / "tests" / "golden"
COMING = ("coming-from.md", "coming-from-papers.md")
LETTERS = {"T": 0.9, "F": 1, "K": 2, "N": 8, "S": 10, "G": 0.001, "E": 0.01, "C": 0.6, "L": 0.3}
FAMILIES = ("llada", "fastdllm", "fastdllm_dream", "fastdllm_factor", "d2_vanilla", "d2_threshold",
            "d2_factor", "d2_certainty", "d2_eb", "d2_klass", "d2_ar", "dream", "klass",
            "klass_dream", "credit", "dinfer_threshold", "dinfer_hierarchy", "localleap",
            "rpd_ce")  # fmt: skip


def commands(name):
    """Every `$ unmask ...` in the console blocks of a page."""
    page = (ROOT / "docs" / name).read_text()
    for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
            yield shlex.split(line)


@pytest.mark.parametrize("arguments", [c for page in COMING for c in commands(page)], ids=" ".join)
def test_the_commands_of_coming_from_run(arguments, capsys):
    assert arguments[0] == "unmask"
    assert main(arguments[1:]) == 0
    told = capsys.readouterr()
    assert told.out.strip()
    assert "warning" not in told.err


def test_the_commands_about_parts_of_ones_own_run(tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs" / "extending.md").read_text()
    module = next(b for b in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "# my_r" in b)
    (tmp_path / "my_rules.py").write_text(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    given = list(commands("extending.md"))
    assert {arguments[1] for arguments in given} == {"rules", "run", "replay", "eval", "sweep"}
    for program, *arguments in given:
        assert (program, main(arguments)) == ("unmask", 0)
        assert capsys.readouterr().out.strip()


def test_the_commands_about_installing_run(capsys):
    given = list(commands("install.md"))
    assert {arguments[1] for arguments in given} >= {"--version", "run"}
    for program, *arguments in given:
        assert program == "unmask"
        if arguments == ["--version"]:  # argparse ends the process
            with pytest.raises(SystemExit, match=r"^0$"):
                main(arguments)
        else:
            assert main(arguments) == 0
        assert capsys.readouterr().out.strip()


def test_the_commands_about_the_page_run_in_their_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _, *arguments in commands("page.md"):
        assert main(arguments) == 0
    assert {file.name for file in tmp_path.glob("*.html")} == {
        "swd.html",
        "two.html",
        "viewer.html",
    }


def test_the_server_page_asks_the_embedded_model_what_it_can_answer():
    prompts = re.findall(r'"content": "([^"]+?)"}]', (ROOT / "docs" / "server.md").read_text())
    assert len(prompts) > 1
    assert set(prompts) <= set(PROMPTS)


def rules_of(name):
    """Every rule of the page, in commands, examples and tables; letters stand for numbers there."""
    page = (ROOT / "docs" / name).read_text()
    texts = re.findall(r"--rule \"([^\"]+)\"", page) + re.findall(r"ids, \"([^\"]+)\"", page)
    plain = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    for cell in re.findall(r"`([^`]+)`", plain):
        text = re.sub(r"\b[A-Z]\b", lambda letter: str(LETTERS.get(letter[0])), cell)
        text = text.replace("\\|", "|").strip()
        if " | " in text and not text.startswith("|") and "FILE" not in text:
            texts.append(text)
    for text in texts:
        first = re.match(r"\w+", text)[0]
        scored = kind_named(first).stage in ("score", "logits")
        yield Rule.parse(text if scored else f"confidence | {text}")


def shape(rule):
    """A rule without its numbers: the names of its parts, and the words among their knobs."""
    shapes = []
    for part in rule.parts:
        kind = kind_of(part)
        knobs = (
            dict(part.knobs) if isinstance(part, Bound) else vars(part) if kind.arguments else {}
        )
        words = {name: knobs[name] for name in knobs if isinstance(knobs[name], str | bool)}
        shapes.append((kind.name, *sorted(words.items())))
    return tuple(shapes)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_rules_of_coming_from_are_those_that_repeat_the_originals(family):
    mapped = {shape(rule) for page in COMING for rule in rules_of(page)}
    replayed = set()
    (file,) = GOLDEN.glob(f"decoders*/upstream_{family}.jsonl")
    for line in file.read_text().splitlines():
        try:
            replayed.add(shape(plan_of(json.loads(line), file.parent).settings.rule))
        except (KnownDifference, NotOffered):
            continue
    assert replayed
    for rule in replayed:  # their score is an option of its own in the tables
        alike = {((score,), *rule[1:]) for score in ("confidence", "margin", "entropy")}
        assert mapped & {rule, *alike}, rule
