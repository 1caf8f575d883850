"""The paper's figures stand beside ours only where they belong."""

from __future__ import annotations

import pytest

from tests.lab.makers import trial
from unmask.lab.paper import DREAM, LLADA, published
from unmask.lab.report.paper_columns import counterpart, figures, readings, why_not_the_papers
from unmask.lab.report.rule_parts import parts_of

PAPER = {
    "model": "GSAI-ML/LLaDA-8B-Instruct",
    "task": "math500",
    "preset": "paper",
    "length": 512,
    "rule": "confidence | swd(5) | eb(0.1)",
}


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("GSAI-ML/LLaDA-8B-Instruct", LLADA),
        ("/models/LLaDA-8B-Instruct/", LLADA),
        ("C:\\models\\llada-8b-instruct", LLADA),
        ("/hub/models--Dream-org--Dream-v0-Instruct-7B/snapshots/0a1b", DREAM),
        ("embedded", None),
        ("GSAI-ML/LLaDA-8B-Base", None),
        ("GSAI-ML/LLaDA-1.5", None),
        ("me/LLaDA-8B-Instruct-lora", None),
    ],
)
def test_only_the_papers_own_checkpoints_have_a_counterpart(name, model):
    assert counterpart(name) == model


def test_both_figures_are_given_where_the_paper_contradicts_itself():
    published = figures(trial(**PAPER), LLADA)
    assert [(each.table, each.accuracy) for each in published] == [
        ("table1", 26.2),
        ("llada-history", 36.0),
    ]


def test_a_figure_that_two_tables_share_is_given_once():
    published = figures(trial(**{**PAPER, "task": "gsm8k"}), LLADA)
    assert [(each.accuracy, each.nfe) for each in published] == [(67.3, 163.2)]


def test_figures_that_differ_in_their_digits_alone_are_one():
    rule = "confidence | swd(30) | eb(0.1)"
    printed = {
        p.accuracy for p in published() if (p.model, p.task, p.rule) == (DREAM, "gsm8k", rule)
    }
    assert len(printed) == 2
    assert len(figures(trial(**{**PAPER, "task": "gsm8k", "rule": rule}), DREAM)) == 1


def test_every_reading_of_swd_has_the_papers_figures_and_says_so():
    for start in ("single", "skip", "uniform"):
        rule = f"confidence | swd(5, start={start}) | eb(0.1)"
        assert figures(trial(**{**PAPER, "rule": rule}), LLADA) == figures(trial(**PAPER), LLADA)
        assert len(readings(rule)) == (start != "uniform")
    for form in ("additive", "signed", "literal"):
        rule = f"entropy | swd(5, start=uniform, form={form}) | eb(0.1)"
        (figure,) = figures(trial(**{**PAPER, "rule": rule}), LLADA)
        assert (figure.accuracy, figure.nfe) == (20.4, 224.3)
        assert len(readings(rule)) == (form != "literal")  # Eq. 8 as printed
    assert readings("confidence | swd(5, start=uniform) | eb(0.1)") == []  # its score has one form
    assert readings("confidence | eb(0.1)") == []


def test_the_length_of_a_figure_is_that_of_its_table():
    task = {**PAPER, "task": "humaneval"}
    short = figures(trial(**{**task, "length": 256}), LLADA)
    long = figures(trial(**{**task, "length": 512}), LLADA)
    assert [(each.table, each.accuracy, each.nfe) for each in short] == [
        ("table1", 36.0, 77.2),
        ("efficiency", 36.0, 75.7),
    ]
    assert [(each.table, each.accuracy, each.nfe) for each in long] == [
        ("efficiency", 28.04, 82.78)
    ]


def test_the_remark_on_gamma_0_005_stands_beside_dream_on_mbpp():
    for score, count in (("confidence", 1), ("margin", 1), ("entropy", 0)):
        rule = f"{score} | swd(30) | eb(0.005)"
        seen = figures(trial(**{**PAPER, "task": "mbpp", "length": 256, "rule": rule}), DREAM)
        assert [(each.accuracy, each.nfe) for each in seen] == count * [(26.6, 98.6)]
        assert all("does not name the score" in each.remark for each in seen)


def test_the_only_misprinted_forwards_are_those_of_top_1_with_swd_on_gsm8k():
    wrong = {(each.table, each.task, each.rule) for each in published() if each.misprint}
    scores = ("confidence", "margin", "entropy")
    assert wrong == {("llada-top1", "gsm8k", f"{score} | swd(5) | top(1)") for score in scores}
    assert {each.forwards for each in published() if each.misprint} == {None}


@pytest.mark.parametrize(
    "change",
    [
        {"length": 256},
        {"preset": "official"},
        {"eos": "suppress"},
        {"cache": "dual"},
        {"temperature": 0.1},
        {"steps": 64},
        {"guidance": 1.5},
        {"task": "words"},
    ],
)
def test_another_protocol_has_no_figure_and_a_reason(change):
    other = trial(**{**PAPER, **change})
    assert figures(other, LLADA) == []
    assert why_not_the_papers(other)


@pytest.mark.parametrize(
    "change",
    [
        {"rule": "confidence | swd(7) | eb(0.1)"},
        {"rule": "confidence | swd(5, kl=cur_prev) | eb(0.1)"},
        {"block": 64},
        {"task": "mbpp", "length": 512},
    ],
)
def test_what_the_paper_did_not_run_has_no_figure(change):
    assert figures(trial(**{**PAPER, **change}), LLADA) == []


def test_a_model_without_counterpart_has_no_figure():
    assert figures(trial(**PAPER), None) == []


def test_every_rule_of_the_paper_can_be_read():
    assert not [each.rule for each in published() if parts_of(each.rule).problem]
