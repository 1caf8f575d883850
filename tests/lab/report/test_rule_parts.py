"""Rules taken apart for tables."""

from __future__ import annotations

import pytest

from unmask.lab.report.rule_parts import parts_of


def test_a_rule_is_score_lam_and_selection():
    parts = parts_of("confidence | swd(5) | eb(0.1)")
    assert (parts.score, parts.lam, parts.selection) == ("confidence", 5, "eb(0.1)")
    assert (parts.kind, parts.knob) == ("eb", "0.1")
    assert parts.base == "confidence | eb(0.1)"


def test_swd_of_zero_is_the_plain_rule():
    parts = parts_of("confidence | swd(0) | eb(0.1)")
    assert (parts.rule, parts.lam) == ("confidence | eb(0.1)", 0)


@pytest.mark.parametrize(
    ("rule", "method"),
    [
        ("confidence | swd(5) | eb(0.1)", "confidence | swd(5) | eb(·)"),
        ("confidence | top(1)", "confidence | top(·)"),
        ("entropy | threshold(-0.7)", "entropy | threshold(·)"),
        ("confidence | klass(0.9, kl=0.01)", "confidence | klass(·, kl=0.01)"),
        ("credit(0.1) | confidence | eb(0.1)", "credit(0.1) | confidence | eb(·)"),
    ],
)
def test_a_method_leaves_the_knob_open_and_nothing_else(rule, method):
    assert parts_of(rule).method == method


def test_the_baseline_keeps_credit_and_loses_swd():
    parts = parts_of("credit(0.65) | confidence | swd(5, kl=cur_prev) | threshold(0.9)")
    assert parts.base == "credit(0.65) | confidence | threshold(0.9)"
    assert parts.variant == "kl=cur_prev"
    assert parts.score == "credit(0.65) | confidence"


@pytest.mark.parametrize(
    ("rule", "family"),
    [
        ("confidence | eb(0.1)", "eb"),
        ("confidence | klass(0.9)", "history"),
        ("credit(0.65) | confidence | threshold(0.9)", "history"),
        ("confidence | factor(1)", "factor"),
    ],
)
def test_history_aware_rules_share_a_table(rule, family):
    assert parts_of(rule).family == family


def test_a_rule_of_a_plug_in_that_is_not_here_is_read_from_its_text():
    parts = parts_of("confidence | theirs(3)")
    assert (parts.rule, parts.method) == ("confidence | theirs(3)", "confidence | theirs(·)")
    assert (parts.score, parts.kind, parts.knob, parts.lam) == ("confidence", "theirs", "3", 0)
    assert "theirs" in parts.problem


@pytest.mark.parametrize(
    ("rule", "score", "selection"),
    [
        ("mine | eb(0.1)", "mine", "eb(0.1)"),
        ("mine(2) | lean(1) | swd(5) | take(3, deep=2) | cap(4)", "mine(2) | lean(1)",
         "take(3, deep=2) | cap(4)"),
        ("boost(1) | confidence | take | stop_at(2)", "boost(1) | confidence | take", "stop_at(2)"),
    ],
)  # fmt: skip
def test_the_place_of_an_unknown_part_tells_its_stage(rule, score, selection):
    parts = parts_of(rule)
    assert (parts.score, parts.selection) == (score, selection)


def test_every_number_of_a_rule_but_lam_is_a_knob():
    rule = "credit(0.65) | confidence | swd(5) | klass(0.9, kl=0.01) | cap(4)"
    knobs = {knob.method: (knob.name, knob.value) for knob in parts_of(rule).knobs}
    front = "credit(0.65) | confidence | swd(5)"
    assert knobs[f"{front} | klass(·, kl=0.01) | cap(4)"] == ("conf", "0.9")
    assert knobs[f"{front} | klass(0.9, kl=·) | cap(4)"] == ("kl", "0.01")
    assert knobs[f"{front} | klass(0.9, kl=0.01, n=·) | cap(4)"] == ("n", "2")
    assert knobs[f"{front} | klass(0.9, kl=0.01) | cap(·)"] == ("k", "4")
    assert "credit(·) | confidence | swd(5) | klass(0.9, kl=0.01) | cap(4)" in knobs
    assert not any("swd(·)" in method for method in knobs)


def test_the_literal_form_is_read_without_its_warning():
    assert parts_of("entropy | swd(5, form=literal) | eb(0.1)").variant == "form=literal"


def test_rules_are_ordered_by_score_then_lam_then_knob_as_numbers():
    rules = [
        "entropy | eb(0.1)",
        "confidence | swd(15) | eb(0.1)",
        "confidence | eb(2)",
        "confidence | swd(5) | eb(0.1)",
        "confidence | eb(0.05)",
        "margin | eb(0.1)",
    ]
    assert sorted(rules, key=lambda rule: parts_of(rule).order) == [
        "confidence | eb(0.05)",
        "confidence | eb(2)",
        "confidence | swd(5) | eb(0.1)",
        "confidence | swd(15) | eb(0.1)",
        "margin | eb(0.1)",
        "entropy | eb(0.1)",
    ]


def test_a_part_around_swd_goes_with_it():
    parts = parts_of("entropy | swd(5) | only(ends) | eb(0.1)")
    assert parts.base == "entropy | eb(0.1)"
    assert parts.lam == 5
