"""The cost of a sweep before it starts: forwards of the right model at the right length."""

from __future__ import annotations

from types import SimpleNamespace

from tests.lab.makers import answer, asks, trial
from unmask.lab.sweep.cost import estimate
from unmask.lab.sweep.store import Store

LLADA, DREAM = "GSAI-ML/LLaDA-8B-Instruct", "/models/Dream-v0-Instruct-7B"
BASE = "confidence | eb(0.1)"


def work(**changes):
    usual = {"model": LLADA, "task": "humaneval", "preset": "paper", "length": 256, "rule": BASE}
    return SimpleNamespace(trial=trial(**{**usual, **changes}), asks=asks(4))


def forwards(tmp_path, **changes):
    """The forwards of an example and their source, as the table says them."""
    lines = estimate([work(**changes)], tmp_path / "none.sqlite")
    _, left, each, *source = lines[3].partition("  " + changes.get("rule", BASE))[0].split()
    assert left == "4"
    return float(each), " ".join(source[:-1])


def test_the_papers_forwards_are_those_of_the_same_model(tmp_path):
    assert forwards(tmp_path) == (102.9, "the paper")
    assert forwards(tmp_path, model=DREAM) == (179.7, "the paper")
    assert forwards(tmp_path, model="embedded") == (256, "at most")
    assert forwards(tmp_path, model=DREAM, rule="confidence | top(1)") == (256, "at most")


def test_the_papers_forwards_are_those_of_the_same_length(tmp_path):
    assert forwards(tmp_path, length=512) == (149.2, "the paper")  # of the efficiency table
    assert forwards(tmp_path, length=128) == (128, "at most")
    assert forwards(tmp_path, task="gsm8k", length=512) == (224.1, "the paper")
    assert forwards(tmp_path, task="gsm8k", length=256) == (256, "at most")


def test_another_protocol_has_no_forwards_of_the_paper(tmp_path):
    for change in ({"eos": "suppress"}, {"eos": "last"}, {"cache": "dual"}, {"preset": "official"}):
        assert forwards(tmp_path, **change) == (256, "at most")
    assert forwards(tmp_path, steps=64) == (64, "at most")


def test_a_misprint_is_not_repeated(tmp_path):
    rule = "confidence | swd(5) | top(1)"
    assert forwards(tmp_path, task="gsm8k", length=512, rule=rule) == (512, "at most")
    assert forwards(tmp_path, task="math500", length=512, rule=rule) == (512, "the paper")


def test_every_reading_of_swd_has_the_papers_forwards(tmp_path):
    for start in ("single", "skip", "uniform"):
        rule = f"confidence | swd(5, start={start}) | eb(0.1)"
        assert forwards(tmp_path, rule=rule) == (77.2, "the paper")


def test_a_line_tells_the_length_the_window_the_policy_and_one_of_several_models(tmp_path):
    works = [work(), work(model=DREAM, block=32, eos="last")]
    lines = estimate(works, tmp_path / "none.sqlite")
    assert lines[3].endswith(f"  {BASE}, {LLADA}, full window, 256 tokens")
    assert lines[4].endswith(f"  {BASE}, {DREAM}, blocks of 32, 256 tokens, EOS last")
    assert LLADA not in estimate(works[:1], tmp_path / "none.sqlite")[3]


def test_what_was_measured_comes_first(tmp_path):
    file, one = tmp_path / "some.sqlite", work()
    with Store(file) as store:
        store.sign_in({})
        store.add(one.trial)
        assert store.claim(one.trial, one.asks[0])
        store.finish(one.trial, one.asks[0], answer(nfe=40))
    line = estimate([one], file)[3]
    assert line.split()[1:4] == ["3", "40.0", "measured"]
