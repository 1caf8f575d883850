"""Odd arguments end in one line, not in a traceback or a run that nobody wanted."""

from __future__ import annotations

import os

import pytest

from unmask.cli import main

ZERO, PIPE = "/dev/zero", "pipe"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "x", "--length=--"], "argument --length: expected one argument"),
        (["run", "\udcff"], "an argument is not UTF-8 text"),
        (["run", "x", "--batch-size", "9" * 5000], "invalid int value: '999"),
        (["run", "--input", PIPE], "pipe holds no prompt"),
        (["run", "--input", "a\nb"], "a b cannot be read: No such file"),
        (["run", "x", "--schema", ZERO], "/dev/zero is too large; at most 4 MB are read"),
        (["run", "x", "--schema", "digits"], "the schema is not JSON: Exceeds the limit"),
        (["run", "x", "--language", "choice:[" + "9" * 5000], "choice is not a JSON list"),
        (["run", "x", "--model", ""], "--model must not be empty"),
        (["run", "x", "--trace", PIPE], "pipe cannot be written: No such device"),
        (["explain", PIPE], "pipe is not a trace"),
        (["eval", "--task", "words", "--workers", "1000"], "--workers must be from 1 to 256"),
        (["compare", "swd", "llada", "--task", "words", "--limit", "0"], "limit must be a whole"),
        (["theory", "--cases", "1" + "0" * 30], "cases must be from 1 to 1048576"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_an_odd_argument_ends_in_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    os.mkfifo(PIPE)
    (tmp_path / "digits").write_text('{"minimum":' + "9" * 5000 + "}")
    try:
        code = main(arguments)
    except SystemExit as stopped:  # argparse's own errors
        code = stopped.code
    (line,) = capsys.readouterr().err.splitlines()
    assert code == 2
    assert message in line
    assert len(line) < 1300


def test_a_file_of_prompts_without_end_is_refused(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("unmask.text.jsonl.MOST_PROMPTS", 2)
    (tmp_path / "prompts").write_text('{"prompt": "pig"}\n' * 3)
    assert main(["run", "--input", str(tmp_path / "prompts")]) == 2
    assert "is too large; a file of prompts has at most 2 lines" in capsys.readouterr().err


def test_too_little_memory_is_told_in_one_line(monkeypatch, capsys):
    def fails(_):
        raise MemoryError

    monkeypatch.setattr("unmask.cli.rules.run", fails)
    assert main(["rules"]) == 1
    assert capsys.readouterr().err == "unmask rules: not enough memory\n"
