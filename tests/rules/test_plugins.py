"""Parts of one's own, imported by name, in every command that reads rules."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys

import pytest

from tests.new_process import unmask
from tests.paths import ROOT
from unmask.errors import RuleError
from unmask.lab.sweep.store import Store
from unmask.rules.plugins import import_parts

PAGE = (ROOT / "docs" / "extending.md").read_text()
MODULE = next(b for b in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "my_rules.py" in b)
RULE = "confidence | sure_prefix(0.9)"
PROMPT = "Ann has 12 pens. She buys 3, then loses 5. How many now?"


@pytest.fixture
def folder(tmp_path):
    """A folder with the file of the docs in it."""
    (tmp_path / "my_rules.py").write_text(MODULE)
    return tmp_path


@pytest.mark.long
def test_a_file_brings_its_parts_to_a_run_and_its_trace_needs_them_too(folder):
    here = ("--import", "my_rules.py")
    code, out, told = unmask(
        folder,
        ["run", PROMPT, "--rule", RULE, *here, "--trace", "a.trace"],
        ["replay", "a.trace", *here],
        ["explain", "a.trace", *here],
    )
    assert code == 0, told
    assert "identical to the last bit" in out
    assert f"\n{RULE}" in out
    code, _, told = unmask(folder, ["replay", "a.trace"])
    assert code == 2
    assert "unknown rule part 'sure_prefix'" in told
    assert "; my_rules.py defines sure_prefix: give --import my_rules.py" in told


@pytest.mark.long
def test_a_module_on_pythons_path_is_imported_by_its_name(folder, tmp_path_factory):
    away = tmp_path_factory.mktemp("away")
    code, out, told = unmask(away, ["rules", RULE, "--import", "my_rules"], path=folder)
    assert code == 0, told
    assert "up to and including the first position" in " ".join(out.split())


@pytest.mark.long
def test_a_sweep_knows_its_trials_by_the_source_of_their_parts_in_every_worker(folder):
    sweep = ("sweep", "--task", "copy", "--limit", "2", "--rule", RULE, "--store", "s.sqlite",
             "--rule", "confidence | top(2)", "--import", "my_rules.py")  # fmt: skip
    code, _, told = unmask(folder, [*sweep, "--workers", "2"])
    assert code == 0, told
    with Store(folder / "s.sqlite", create=False) as store:
        own, plain = sorted(store.trials(), key=lambda trial: trial.parts == "")
        assert (own.rule, bool(own.parts)) == (RULE, True)
        assert (plain.rule, plain.parts) == ("confidence | top(2)", "")
        assert len(store.rows(own)) == len(store.rows(plain)) == 2
    (folder / "my_rules.py").write_text(MODULE.replace("tau: float = 0.8", "tau: float = 0.7"))
    code, _, told = unmask(folder, sweep)
    assert code == 0, told
    with Store(folder / "s.sqlite", create=False) as store:
        assert [trial.rule for trial in store.trials()].count(RULE) == 2
        assert [trial.rule for trial in store.trials()].count("confidence | top(2)") == 1


@pytest.mark.long
def test_answers_of_another_source_are_not_mixed_into_a_file(folder):
    (folder / "in.jsonl").write_text(json.dumps({"prompt": PROMPT}) + "\n")
    run = ("run", "--input", "in.jsonl", "--output", "out.jsonl", "--rule", RULE,
           "--import", "my_rules.py")  # fmt: skip
    assert unmask(folder, run, run)[0] == 0
    (folder / "my_rules.py").write_text(MODULE + "\n# a comment changes nothing\n")
    assert unmask(folder, run)[0] == 0
    (folder / "my_rules.py").write_text(MODULE.replace("<= tau", "< tau"))
    code, _, told = unmask(folder, run)
    assert code == 2
    assert "was written with other settings (parts was" in told


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("fails.py", "undefined_name", "NameError: name 'undefined_name' is not defined"),
        ("torn.py", "x = (", "SyntaxError: '(' was never closed"),
        ("needs.py", "import no_such_package", "ModuleNotFoundError: No module named 'no_such_p"),
        ("leaves.py", "raise SystemExit(3)", "SystemExit: 3"),
        ("sqlite3.py", "", "the module name 'sqlite3' is taken by"),
        ("colorsys.py", "", "the module name 'colorsys' is taken by"),
        ("names.py", "import unmask\n@unmask.selection\ndef eb(view, scores): ...",
         "the part name 'eb' is taken by unmask.rules.prefixes.EntropyBound"),
    ],
    ids=lambda value: value if str(value).endswith(".py") else "",
)  # fmt: skip
def test_a_file_that_cannot_be_imported_is_told_in_one_line_and_leaves_nothing(
    tmp_path, name, text, said
):
    (tmp_path / name).write_text(text)
    before = dict(sys.modules)
    with pytest.raises(RuleError, match=re.escape(said)) as caught:
        import_parts(str(tmp_path / name))
    assert str(caught.value).startswith(f"{tmp_path / name} cannot be imported: ")
    assert "\n" not in str(caught.value)
    stem = name.removesuffix(".py")
    assert sys.modules.get(stem) is before.get(stem)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module", "there is no module 'no_such_module' on Python's path"),
        ("no_such.module", "give a file, such as module.py"),
        ("no_such_file.py", "no_such_file.py cannot be imported: FileNotFoundError"),
        ("folder/no_such_file", "FileNotFoundError: there is no such file"),
    ],
)
def test_what_is_not_there_is_told_in_one_line(name, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuleError, match=re.escape(said)):
        import_parts(name)


def test_a_file_is_imported_once(tmp_path, monkeypatch):
    file = tmp_path / "counts_its_imports.py"
    file.write_text("import os\nos.environ['IMPORTED'] = os.environ.get('IMPORTED', '') + 'x'\n")
    monkeypatch.setenv("IMPORTED", "")
    import_parts(str(file))
    import_parts(str(file))
    monkeypatch.delitem(sys.modules, file.stem)
    assert os.environ["IMPORTED"] == "x"


@pytest.mark.long
def test_the_example_of_parts_of_ones_own_runs_as_it_says():
    text = (ROOT / "examples" / "own_rule.py").read_text()
    program, *arguments = shlex.split(re.search(r"^    (unmask run .*)$", text, re.MULTILINE)[1])
    code, out, told = unmask(ROOT, arguments)
    assert (program, code) == ("unmask", 0), told
    assert out == "cat, bee, pig\n"
