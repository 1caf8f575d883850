"""The commands of the lab, as they are called."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unmask.cli import demo, main
from unmask.embedded import PROMPTS
from unmask.lab.sweep.store import Store

SMALL = ["--task", "copy", "--length", "16", "--block", "full", "--limit", "3"]


@pytest.fixture
def store(tmp_path):
    return tmp_path / "lab.sqlite"


def test_eval_decodes_grades_and_tells(store, capsys):
    assert main(["eval", *SMALL, "--rule", "confidence | top(1)", "--store", str(store)]) == 0
    out = capsys.readouterr().out
    assert "confidence|top(1)" in out
    assert "100.0" in out
    assert f"stored in {store}" in out
    with Store(store, create=False) as opened:
        (trial,) = opened.trials()
        assert len(opened.rows(trial)) == 3


def test_eval_says_which_rule_it_takes_and_why_if_none_is_given(store, capsys):
    asked = ["eval", "--task", "copy", "--limit", "1", "--store", str(store)]
    assert main([*asked, "--length", "32"]) == 0
    (line,) = [each for each in capsys.readouterr().err.splitlines() if ": rule " in each]
    assert line == (
        "unmask eval: rule entropy | threshold(-0.1) in blocks of 16 "
        "(measured, docs/recommended.md)"
    )
    assert main([*asked, "--length", "32", "--rule", "confidence | top(4)"]) == 0
    assert "unmask eval: rule" not in capsys.readouterr().err


@pytest.mark.parametrize(("lam", "has_kl"), [(0, False), (5, True)])
def test_eval_ends_with_where_time_and_memory_went(store, capsys, lam, has_kl):
    rule = f"confidence | swd({lam}) | top(1)"
    assert main(["eval", *SMALL, "--rule", rule, "--store", str(store)]) == 0
    lines = capsys.readouterr().out.splitlines()
    head = lines.index("averages per example:") + 1
    names = [name for name in lines[head].split("  ") if name]
    cells = dict(zip(map(str.strip, names), lines[head + 1].split(), strict=True))
    model, decision, kl, total = (
        float(cells[name]) for name in ("model s", "decision s", "of it KL s", "total s")
    )
    assert model + decision == pytest.approx(total, rel=0.02)
    assert (kl > 0) == has_kl
    assert kl < decision
    assert 0 < float(cells["memory GB, mean"]) <= float(cells["peak"])
    assert lines[head + 2].startswith("the run was not timed")


def test_a_sweep_from_a_file_goes_on_where_it_was(store, tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text(
        'task = "copy"\nlength = 16\nblock = "full"\nrule = "confidence | top({1,4})"\n'
    )
    for limit in ("2", "4"):
        assert main(["sweep", str(file), "--limit", limit, "--store", str(store)]) == 0
    assert capsys.readouterr().out.count("confidence|top(4)") == 2
    with Store(store) as opened:
        assert [len(opened.rows(trial)) for trial in opened.trials()] == [4, 4]


def test_a_dry_run_says_the_cost_and_runs_nothing(store, capsys):
    assert main(["eval", *SMALL, "--store", str(store), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "forwards left" in out
    assert " s on this machine (cpu, batch size 8, one worker)" in out
    assert "A100" not in out
    assert not store.exists()


def test_the_lines_of_a_run_tell_eos_policies_apart(store, capsys):
    rule = ["--rule", "confidence | top(4)", "--eos", "keep,last"]
    assert main(["sweep", *SMALL, *rule, "--store", str(store)]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "done: copy, 16 tokens: confidence | top(4), full window, EOS kept",
        "done: copy, 16 tokens: confidence | top(4), full window, EOS last",
    ]


def test_the_sweeps_of_the_package_are_listed(capsys):
    assert main(["sweep", "--list"]) == 0
    out = capsys.readouterr().out
    assert "paper-table1 " in out
    assert "paper-efficiency" in out


def test_tasks_are_listed_and_shown(capsys):
    assert main(["tasks"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in ("humaneval", "mbpp", "gsm8k", "math500", "words"))
    assert all(f'"{prompt}"' in listed for prompt in PROMPTS)
    assert main(["tasks", "gsm8k"]) == 0
    shown = capsys.readouterr().out
    assert "paper            512 tokens, blocks of 32, EOS kept; " in shown
    assert "official         512 tokens, full window, EOS last; " in shown
    assert "lm-eval" in shown
    assert main(["tasks", "gsm8k", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["presets"]) >= {"paper", "official", "lm-eval"}


def test_tuning_tells_its_choice(store, capsys):
    asked = ["tune", "--task", "copy", "--length", "16", "--block", "full", "--lam", "0"]
    small = ["--budget", "40", "--calibration", "3", "--held-out", "2", "--nfe", "16"]
    assert main([*asked, *small, "--store", str(store)]) == 0
    out = capsys.readouterr().out
    assert "chosen: confidence | eb(" in out
    assert "regret" in out


def test_tuning_takes_a_rule_with_a_part_of_ones_own(store, tmp_path, capsys):
    file = tmp_path / "tuned_part.py"
    file.write_text(
        "import unmask\n\n\n@unmask.selection\ndef leftmost(view, scores, k: int = 1):\n"
        '    """The leftmost masks."""\n'
        "    return view.masked & (view.masked.cumsum(-1) <= k)\n"
    )
    asked = ["tune", "--task", "copy", "--length", "16", "--block", "full", "--import", str(file)]
    small = ["--budget", "40", "--calibration", "3", "--held-out", "2"]
    rule = ["--rule", "confidence | swd({0,1}) | leftmost({1,8})"]
    assert main([*asked, *small, *rule, "--store", str(store)]) == 0
    out = capsys.readouterr().out
    assert "2 curves on 3 examples: best confidence | " in out
    assert "leftmost(·), full window, AUP" in out
    assert "chosen: confidence | " in out


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["eval", "--task", "wrods"], "unknown task 'wrods'; did you mean 'words'?"),
        (["eval", *SMALL, "--rule", "confidence | top({1,2})"], "is a sweep of 2 rules; use"),
        (["eval", *SMALL, "--workers", "0"], "--workers must be from 1 to 256, got 0"),
        (["eval", *SMALL, "--batch-size", "0"], "--batch-size must be from 1 to 1048576, got 0"),
        (["eval", *SMALL, "--block", "wide"], "--block must be a whole number >= 1 or 'full'"),
        (["eval", *SMALL, "--block", "64"], "block 64 is larger than the answer of 16"),
        (["eval", "--task", "words", "--preset", "paper"], "unknown preset of words 'paper'"),
        (["sweep"], "a sweep needs a task"),
        (["sweep", "nowhere.toml"], "nowhere.toml cannot be read"),
        (["sweep", "--task", "words"], "a sweep needs a rule"),
        (["sweep", *SMALL, "--rule", "top(1)"], "the rule has no score"),
        (["tune", "--task", "copy", "--lam", "x"], "--lam takes numbers separated by commas"),
        (["tune", "--task", "copy", "--calibration", "0"], "must be from 1 to 199"),
        (["tune", "--task", "copy", "--nfe", "-1"], "--nfe must be a number > 0, got -1"),
        (["tune", "--task", "copy", "--nfe", "0"], "--nfe must be a number > 0, got 0"),
        (["tune", "--task", "copy", "--nfe", "nan"], "--nfe must be a number > 0, got nan"),
        (["tune", "--task", "copy", "--held-out", "0"], "--held-out must be >= 1, got 0"),
        (["tune", "--task", "copy", "--selection", "ebb"], "unknown rule part 'ebb'; did you mean"),
        (
            ["tune", "--task", "copy", "--rule", "swd", "--lam", "1", "--score", "margin"],
            "--rule is a whole rule, so leave out --score and --lam",
        ),
        (["report", "nowhere.sqlite"], "nowhere.sqlite does not exist"),
    ],
)
def test_a_wrong_call_is_one_line(asked, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(asked) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1


def test_missing_data_says_where_to_get_it(tmp_path, capsys):
    assert main(["eval", "--task", "gsm8k", "--data", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "gsm8k_test.jsonl" in told
    assert told.count("\n") == 1


def _ignores_interrupts(process):
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    masks = (int(line.split()[1], 16) for line in lines if line.startswith(("SigIgn:", "SigBlk:")))
    return any(mask & 1 << signal.SIGINT - 1 for mask in masks)


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc").exists(), reason="it reads /proc")
def test_ctrl_c_with_workers_is_one_line_that_says_how_to_resume(store):
    sweep = ["sweep", "--task", "words", "--rule", "confidence | top(1)", "--store", str(store)]
    with subprocess.Popen(
        [sys.executable, "-m", "unmask", *sweep, "--workers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        end = time.monotonic() + 60
        while len(children.read_text().split()) < 3 and time.monotonic() < end:
            time.sleep(0.05)  # two workers and multiprocessing's resource tracker
        assert all(_ignores_interrupts(child) for child in children.read_text().split())
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, told = process.communicate(timeout=60)
    how = f"unmask sweep: interrupted; finished examples are in {store}; "
    how += "run the same command again to resume\n"
    assert (process.returncode, told) == (130, how)


def test_ctrl_c_in_the_demo_is_one_line_that_says_what_to_do(monkeypatch, tmp_path, capsys):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "_show_one", stop)
    assert main(["demo", "--problems", "2", "--output", str(tmp_path / "demo")]) == 130
    assert capsys.readouterr().err == (
        "unmask demo: interrupted; nothing is kept: run it again, or a shorter one with "
        "--problems 20\n"
    )
