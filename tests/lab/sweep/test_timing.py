"""Timed runs: their trials have keys of their own, and never another run's seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.lab.makers import trial
from unmask.cli import main
from unmask.errors import LabError
from unmask.kernels.reduce import use
from unmask.lab.ray.join import Cluster
from unmask.lab.sweep.grid import read_sweep, sweep_of
from unmask.lab.sweep.plan import plan
from unmask.lab.sweep.run_options import RunOptions
from unmask.lab.sweep.store import Store
from unmask.lab.sweep.timing import timing_of

ASKED = {"task": "copy", "length": 16, "block": "full", "rule": "confidence | top(4)", "limit": 2}
OPTIONS = RunOptions(Path("none.sqlite"), batch_size=1)
TIMED = sweep_of({**ASKED, "timed": True}, "", {}, "a test").settings


def test_a_trial_that_is_not_timed_has_the_key_that_it_always_had():
    # of a store that was written before there were timed runs; a rule without SWD has one spelling
    assert trial(rule="confidence | eb(0.1)").key == "68ee3d3e05378fba"
    assert trial(rule="confidence | eb(0.1)", timing="batch size 1").key != "68ee3d3e05378fba"


def test_the_key_of_a_timed_trial_holds_what_its_seconds_depend_on(monkeypatch):
    keys = set()

    def key(options=OPTIONS):
        (work,) = plan(TIMED, None, timing_of(TIMED, options))
        return work.trial.key

    keys.add(plan(sweep_of(ASKED, "", {}, "a test").settings, None)[0].trial.key)
    assert key() == key()
    keys.add(key())
    keys.add(key(replace(OPTIONS, batch_size=8)))
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(threads + 1)
        keys.add(key())
    finally:
        torch.set_num_threads(threads)
    use("torch")
    try:
        keys.add(key())
    finally:
        use("auto")
    for name in ("platform.node", "unmask.lab.sweep.environment.device_name"):
        with monkeypatch.context() as patch:
            patch.setattr(name, lambda *_: "another one")
            keys.add(key())
    assert len(keys) == 7


def test_a_sweep_that_is_not_timed_has_no_conditions():
    settings = sweep_of(ASKED, "", {}, "a test").settings
    assert timing_of(settings, OPTIONS) == ""
    (work,) = plan(settings, None, "whatever")
    assert work.trial.timing == ""


def test_a_timed_run_is_alone():
    for options in (
        replace(OPTIONS, devices=("cpu", "cpu")),
        replace(OPTIONS, cluster=Cluster("auto", None, None)),
    ):
        with pytest.raises(LabError, match="a timed run has one worker"):
            timing_of(TIMED, options)
    with pytest.raises(LabError, match="a timed run writes no traces"):
        timing_of(TIMED, replace(OPTIONS, traces=Path("traces")))
    with pytest.raises(LabError, match="needs the conditions of its run"):
        plan(TIMED, None)


def test_the_papers_efficiency_sweep_is_timed():
    assert all(each.timed for each in read_sweep("paper-efficiency", {}).settings)
    assert not any(each.timed for each in read_sweep("paper-table1", {}).settings)


def test_a_timed_run_decodes_anew_at_batch_size_1_and_then_goes_on(tmp_path, capsys):
    file = tmp_path / "lab.sqlite"
    asked = ["--task", "copy", "--length", "16", "--block", "full", "--rule", "confidence | top(4)"]
    run = ["sweep", *asked, "--limit", "3", "--store", str(file), "--device", "cpu"]
    for more in ([], ["--timed"], ["--timed"], ["--timed", "--batch-size", "2"]):
        assert main([*run, *more]) == 0
    with Store(file, create=False) as store:
        trials = store.trials()
        sizes = {}
        for each in trials:
            rows = store.rows(each)
            assert len(rows) == 3
            (worker,) = {row.worker for row in rows}
            sizes[each.timing.partition(",")[0]] = store.environment(worker)["batch_size"]
        texts = {tuple(row.answer["text"] for row in store.rows(each)) for each in trials}
    assert sizes == {"": 8, "batch size 1": 1, "batch size 2": 2}
    assert len(texts) == 1  # conditions change seconds, not answers
