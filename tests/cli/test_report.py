"""`unmask report` from the command line."""

from __future__ import annotations

import pytest

from tests.lab.makers import trial
from tests.lab.stores import fill, solved
from unmask.cli import main
from unmask.lab.sweep.store import Store

RULES = ("confidence | eb(0.1)", "confidence | swd(5) | eb(0.1)")


@pytest.fixture
def store(tmp_path):
    return fill(tmp_path / "mine.sqlite", {trial(rule=rule): solved("10") for rule in RULES})


def test_the_report_lies_beside_its_store(store, capsys):
    assert main(["report", str(store)]) == 0
    folder = store.with_name("mine-report")
    plot = "rules-words-32-tokens-full-window-01"
    names = {"report.md", "report.json", "report.html", f"{plot}.svg", f"{plot}.png"}
    assert {file.name for file in folder.iterdir()} == names
    assert f"written: {folder / 'report.html'}" in capsys.readouterr().out


def test_or_where_it_is_wanted(store, tmp_path):
    assert main(["report", str(store), "--output", str(tmp_path / "a" / "b")]) == 0
    assert (tmp_path / "a" / "b" / "report.md").is_file()


def test_a_baseline_of_choice(store, tmp_path):
    assert main(["report", str(store), "--baseline", "confidence|swd(5)|eb(0.1)"]) == 0
    text = store.with_name("mine-report").joinpath("report.md").read_text()
    assert "1 comparison with confidence \\| swd(5) \\| eb(0.1)" in text


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--baseline", "margin | top(1)"], "unknown baseline 'margin | top(1)'"),
        (["--baseline", "confidence | tpo(1)"], "did you mean 'confidence | eb(0.1)'?"),
        (["--output", "FILE"], "is a file; give --output a folder"),
    ],
)
def test_a_wrong_call_is_one_line(store, more, message, capsys):
    more = [str(store) if word == "FILE" else word for word in more]
    assert main(["report", str(store), *more]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not store.with_name("mine-report").exists()


def test_a_store_that_holds_nothing_is_one_line(tmp_path, capsys):
    file = tmp_path / "empty.sqlite"
    assert main(["report", str(file)]) == 2
    assert "does not exist" in capsys.readouterr().err
    Store(file).close()
    assert main(["report", str(file)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("unmask report: ")
    assert "holds no trial" in error
    assert error.count("\n") == 1
    assert [each.name for each in tmp_path.iterdir() if "report" in each.name] == []
