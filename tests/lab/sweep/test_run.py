"""Sweeps on the embedded model: what is decoded, stored, graded and never done twice."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest

import unmask
from unmask.errors import UnmaskError
from unmask.lab.grading import Tools
from unmask.lab.summary import Summary
from unmask.lab.sweep import run as running
from unmask.lab.sweep.grid import sweep_of
from unmask.lab.sweep.plan import plan, planned, wanted_of
from unmask.lab.sweep.run import (
    LastModel,
    RunOptions,
    _groups,
    _share,
    check_graders,
    grade,
    run,
)
from unmask.lab.sweep.store import Store

TABLE = {
    "task": "words",
    "rule": "confidence | swd({0,5}) | eb(0.1)",
    "block": "full",
    "length": 16,
    "limit": 5,
}
TIMES = {"seconds_model", "seconds_decision", "seconds_kl", "seconds_total", "memory_mean",
         "memory_peak"}  # fmt: skip


class Counter:
    def __init__(self):
        self.begun = self.finished = 0

    def begin(self, work, done):
        self.begun += done

    def done(self, work, count=1):
        self.finished += count


def works(**changes):
    table = {key: value for key, value in {**TABLE, **changes}.items() if value is not None}
    return plan(sweep_of(table, "", {}, "test").settings, None)


def swept(file, some, **options):
    counter = Counter()
    with Tools() as tools:
        left = run(some, RunOptions(file, **options), tools, counter)
    return left, counter


def contents(file):
    """All that does not depend on the clock."""
    with Store(file) as store:
        return {
            (trial.key, row.ask.example): (
                {key: value for key, value in row.answer.items() if key not in TIMES},
                row.grade,
                row.grader,
            )
            for trial in store.trials()
            for row in store.rows(trial)
        }


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    store = tmp_path_factory.mktemp("lab") / "store.sqlite"
    assert swept(store, works())[0] == 0
    return store


def test_every_example_is_stored_with_its_verdict(file):
    records = contents(file)
    assert len(records) == 10
    for answer, verdict, grader in records.values():
        assert answer["written"] == 16
        assert 1 <= answer["nfe_eos"] <= answer["nfe"] <= 16
        assert verdict["acc"] in (True, False)
        assert grader.startswith("words")


def test_a_stored_text_is_what_decode_gives(file):
    (work, _) = works()
    model, tokenizer = unmask.load()
    with Store(file) as store:
        for row in store.rows(work.trial):
            ids = tokenizer.encode(work.texts[row.ask.example])
            result = unmask.decode(model, ids, work.trial.rule, length=16)
            assert row.answer["nfe"] == result.nfe
            assert tokenizer.decode(result.answer.tolist()).startswith(row.answer["text"])


def test_the_same_sweep_again_decodes_nothing(file):
    before = contents(file)
    left, counter = swept(file, works())
    assert (left, counter.begun, counter.finished) == (0, 10, 0)
    assert contents(file) == before


def test_more_examples_are_added_to_those_that_are_there(file, tmp_path):
    copy = tmp_path / "store.sqlite"
    copy.write_bytes(file.read_bytes())
    _, counter = swept(copy, works(limit=7))
    assert (counter.begun, counter.finished) == (10, 4)


@pytest.mark.parametrize("batch_size", [1, 3])
def test_the_batch_size_changes_nothing_but_the_time(file, tmp_path, batch_size):
    other = tmp_path / "store.sqlite"
    swept(other, works(), batch_size=batch_size)
    assert contents(other) == contents(file)


def test_two_workers_give_what_one_gives(file, tmp_path, forked_workers):
    other = tmp_path / "store.sqlite"
    left, counter = swept(other, works(), devices=("cpu", "cpu"))
    assert (left, counter.finished) == (0, 10)
    assert contents(other) == contents(file)


def test_a_memo_changes_nothing_but_the_time(file, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "AT_ONCE", 6)  # two trials: three examples at a time
    other = tmp_path / "store.sqlite"
    left, counter = swept(other, works(), memo=True)
    assert (left, counter.finished) == (0, 10)
    assert contents(other) == contents(file)


@pytest.mark.parametrize("kinds", [1, 2])
def test_workers_with_a_memo_share_all_examples_and_none_twice(kinds):
    tasks = ["words", "code"][:kinds]
    some = [work for task in tasks for work in works(task=task)]
    options = RunOptions(Path("none.sqlite"), ("cpu", "cpu"), memo=True)
    shares = [
        [(work.trial.key, name) for work in _share(some, options, number) for name in work.by_name]
        for number in range(2)
    ]
    assert all(shares)
    every = [(work.trial.key, name) for work in some for name in work.by_name]
    assert sorted(shares[0] + shares[1]) == sorted(every)


def test_trials_that_share_a_memo_share_the_model_and_the_task(tmp_path):
    some = [*works(), *works(dtype="bfloat16"), *works(task="code", limit=3)]
    groups = [[(w.trial.dtype, w.trial.task) for w in group] for group in _groups(some, True)]
    assert groups == [[("float32", "words")] * 2, [("bfloat16", "words")] * 2,
                      [("float32", "code")] * 2]  # fmt: skip
    assert [len(group) for group in _groups(some, False)] == [1] * 6


def test_rules_with_shadow_positions_run_beside_a_memo(tmp_path):
    some = works(rule="confidence | wino(0.6) | narrow(0.9)", limit=2)
    swept(tmp_path / "memo.sqlite", some, memo=True)
    swept(tmp_path / "plain.sqlite", some)
    assert contents(tmp_path / "memo.sqlite") == contents(tmp_path / "plain.sqlite")


def test_workers_plan_no_example_that_was_not_asked_for():
    some = [work.only(["words/1", "words/3"]) for work in works(limit=None)]
    for work in planned(pickle.loads(pickle.dumps(wanted_of(some))), None):
        assert list(work.by_name) == ["words/1", "words/3"]


def test_grading_again_needs_no_model(file, tmp_path, monkeypatch):
    copy = tmp_path / "store.sqlite"
    copy.write_bytes(file.read_bytes())
    (work, _) = works()
    with Store(copy) as store, Tools() as tools:
        assert grade(store, work, tools) == 0
        for row in store.rows(work.trial):
            store.grade(work.trial, row.ask, {"acc": None, "acc_compat": None}, "an older grader")
        assert grade(store, work, tools) == 5
    assert contents(copy) == contents(file)


def test_settings_that_cannot_be_decoded_fail_before_anything_runs():
    with pytest.raises(UnmaskError, match="block 64 is larger than the answer of 16"):
        works(block=64)
    with pytest.raises(UnmaskError, match="unknown task 'wrods'; did you mean 'words'"):
        works(task="wrods")
    with pytest.raises(UnmaskError, match="unknown preset of words 'papre'"):
        works(preset="papre")


def test_the_graders_are_tested_first():
    some = works()
    with Tools() as tools:
        check_graders(some, tools)
        spoiled = replace(some[0].bench, gold=lambda example: "#### 1000")
        with pytest.raises(UnmaskError, match="the grader of words fails its self-test"):
            check_graders([replace(some[0], bench=spoiled)], tools)


def test_a_model_stays_loaded_between_calls(tmp_path):
    (first, second), models = works(), LastModel()
    assert models.of(first, "cpu") is models.of(second, "cpu")


def test_the_record_tells_where_a_result_comes_from(file):
    with Store(file) as store:
        trial = store.trials()[0]
        row = store.rows(trial)[0]
        environment = store.environment(row.worker)
        assert environment["unmask"] == unmask.__version__
        assert {"torch", "python", "device", "commit", "threads", "batch_size"} <= set(environment)
        assert json.dumps(Summary.of(trial, store.rows(trial)).record())


def test_the_wording_of_the_prompts_is_kept_with_every_trial(file):
    with Store(file) as store:
        task = store.task(store.trials()[0])
    assert (task["task"], task["version"]) == ("words", 1)
    assert task["preset"]["turns"] == [["user", "{{prompt}}"]]
    assert task["preset"]["version"] == 1


def test_a_worker_that_dies_is_told_of(tmp_path, monkeypatch, forked_workers):
    monkeypatch.setattr(running, "_worker", _die)
    with pytest.raises(UnmaskError, match=r"2 of 2 workers ended early: exit code 7"):
        swept(tmp_path / "store.sqlite", works(), devices=("cpu", "cpu"))


def _die(wanted, options, failures):
    raise SystemExit(7)
