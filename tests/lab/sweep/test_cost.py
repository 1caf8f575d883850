"""The cost of a sweep before it starts: forwards of the right model, seconds of this machine."""

from __future__ import annotations

import pytest

from tests.lab.makers import trial
from unmask.lab.grading import Tools
from unmask.lab.sweep import trial_run
from unmask.lab.sweep.cost import dry_run, duration, forwards_of
from unmask.lab.sweep.grid import sweep_of
from unmask.lab.sweep.plan import plan
from unmask.lab.sweep.run import run
from unmask.lab.sweep.run_options import RunOptions, Silent
from unmask.lab.sweep.trial_run import TrialPace, TrialRuns

LLADA, DREAM = "GSAI-ML/LLaDA-8B-Instruct", "/models/Dream-v0-Instruct-7B"
BASE = "confidence | eb(0.1)"
SMALL = {"task": "copy", "length": 16, "block": "full", "limit": 4, "rule": BASE}


def forwards(**changes):
    """The forwards of an example and their source, without a trial run."""
    usual = {"model": LLADA, "task": "humaneval", "preset": "paper", "length": 256, "rule": BASE}
    return forwards_of(trial(**{**usual, **changes}))


def settings(**changes):
    return sweep_of({**SMALL, **changes}, "", {}, "a test").settings


def lines(store, **changes):
    return list(dry_run(settings(**changes), RunOptions(store)))


@pytest.fixture
def store(tmp_path):
    return tmp_path / "lab.sqlite"


def test_the_papers_forwards_are_those_of_the_same_model():
    assert forwards() == (102.9, "the paper")
    assert forwards(model=DREAM) == (179.7, "the paper")
    assert forwards(model="embedded") == (256, "at most")
    assert forwards(model=DREAM, rule="confidence | top(1)") == (256, "at most")


def test_the_papers_forwards_are_those_of_the_same_length():
    assert forwards(length=512) == (149.18, "the paper")  # of the efficiency table
    assert forwards(length=128) == (128, "at most")
    assert forwards(task="gsm8k", length=512) == (224.1, "the paper")
    assert forwards(task="gsm8k", length=256) == (256, "at most")


def test_another_protocol_has_no_forwards_of_the_paper():
    for change in ({"eos": "suppress"}, {"eos": "last"}, {"cache": "dual"}, {"preset": "official"}):
        assert forwards(**change) == (256, "at most")
    assert forwards(steps=64) == (64, "at most")


def test_a_misprint_is_not_repeated():
    rule = "confidence | swd(5) | top(1)"
    assert forwards(task="gsm8k", length=512, rule=rule) == (512, "at most")
    assert forwards(task="math500", length=512, rule=rule) == (512, "the paper")


def test_every_reading_of_swd_has_the_papers_forwards():
    for start in ("single", "skip", "uniform"):
        rule = f"confidence | swd(5, start={start}) | eb(0.1)"
        assert forwards(rule=rule) == (77.2, "the paper")


def test_a_model_on_this_machine_is_tried_and_has_seconds_of_this_machine(store):
    _, _, _, line, _, total, time = lines(store)
    left, each, *source = line.partition(" copy, 16 tokens: ")[0].split()
    assert (left, source[:2], source[3]) == ("4", ["trial", "run"], "s")
    assert line.endswith("copy, 16 tokens: confidence | eb(0.1), full window")
    assert total == f"about {round(4 * float(each))} forwards left"
    assert time.endswith(
        " s on this machine (cpu, batch size 8, one worker), by short trial runs; loading and "
        "grading are extra"
    )
    assert not store.exists()


def test_a_trial_run_has_the_forwards_of_the_examples_that_it_decodes(store):
    works, options = plan(settings(rule=["confidence | top(1)", BASE]), None), RunOptions(store)
    runs = TrialRuns(2, "cpu", 8)
    tried = [runs.of(work).forwards for work in works]
    with Tools() as tools:
        run(works, options, tools, Silent())
    measured = [line.split()[:4] for line in dry_run(settings(rule=BASE), options)][3]
    assert tried[0] == 16
    assert measured == ["0", f"{tried[1]:.1f}", "the", "store"]


def test_what_is_finished_costs_nothing(store):
    with Tools() as tools:
        run(plan(settings(), None), RunOptions(store), tools, Silent())
    assert lines(store)[-1].startswith("about 0.0 s on this machine")
    assert lines(store, limit=6)[3].split()[0] == "2"


def test_trials_share_the_seconds_of_the_trial_runs():
    works = plan(settings(rule=["confidence | top(1)", BASE]), None)
    runs = TrialRuns(2, "cpu", 8, spent=trial_run.SECONDS)
    first, second = (runs.of(work) for work in works)
    assert first.seconds > 0  # the first of its model and length makes a step
    assert second == TrialPace(first.seconds)


def test_a_model_that_is_not_downloaded_has_forwards_only(store):
    *_, last = told = lines(store, model="nobody/nothing-of-the-kind")
    assert last == "nobody/nothing-of-the-kind is not downloaded, so there was no trial run of it"
    assert told[3].split()[:5] == ["4", "16.0", "at", "most", "?"]
    assert not any("A100" in line or "this machine" in line for line in told)


def test_the_papers_pace_is_for_the_papers_models_and_is_named(store):
    *_, pace, last = lines(store, model=LLADA, length=256, limit=1, steps=12)
    assert pace == (
        "about 0.9 s for 1 trial on one A100, at the paper's pace of llada-8b-instruct (75 ms a "
        "forward at 256 tokens, 110 ms at 512, batch size 1)"
    )
    assert last.startswith(f"{LLADA} is not downloaded")


def test_a_model_that_is_too_large_is_not_loaded(store, monkeypatch):
    monkeypatch.setattr(trial_run, "memory", lambda device: (1, 1))
    last = lines(store)[-1]
    assert last == "embedded is too large for the memory of cpu, so there was no trial run of it"


def test_durations_have_the_unit_that_suits_them():
    spans = (0, 1.234, 12.3, 99, 100, 5900, 6000, 360_000)
    assert [duration(span) for span in spans] == [
        "0.0 s", "1.2 s", "12 s", "99 s", "1.7 min", "98.3 min", "1.7 h", "100.0 h",
    ]  # fmt: skip
