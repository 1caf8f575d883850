"""The one-line notation: read, printed, swept, and its errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask import Rule, RuleError, UnknownName
from unmask.rules import registry
from unmask.rules.notation import expand, parse
from unmask.rules.prefixes import EntropyBound
from unmask.rules.registry import kinds, show
from unmask.rules.select import Klass, TopK
from unmask.rules.stability import Stability


def test_the_parts_stand_in_their_order():
    parts = parse("credit | confidence | swd(5) | pc | eb(0.1) | floor(2) | cap(4) | revoke")
    assert [type(part).__name__ for part in parts[2:]] == [
        "Stability",
        "PositionCalibration",
        "EntropyBound",
        "Floor",
        "Cap",
        "Drift",
    ]


def test_plain_values_fill_the_knobs_from_the_left():
    assert parse("confidence | swd(3, cur_prev, skip) | top")[1] == Stability(
        3, kl="cur_prev", start="skip"
    )


def test_knobs_have_names():
    rule = Rule.parse("confidence | klass(conf=0.5, kl=0.1, n=3, gate=no)")
    assert rule.select == Klass(0.5, 0.1, 3, gate=False)


def test_spaces_and_empty_parentheses_do_not_matter():
    assert Rule.parse(" confidence|swd( 5 , kl = cur_prev )|top() ") == Rule.parse(
        "confidence | swd(5, kl=cur_prev) | top(1)"
    )


def test_a_rule_prints_the_first_knob_and_what_differs_from_the_default():
    rule = Rule.parse("confidence | swd(lam=5.0, kl=prev_cur, scope=block) | eb")
    assert str(rule) == "confidence | swd(5, scope=block) | eb(0.1)"


@given(value=st.floats(allow_nan=False))
def test_a_number_reads_back_as_it_is_shown(value):
    assert float(show(value)) == value


@given(value=st.floats(0, 1e18))
def test_a_knob_reads_back_as_it_prints(value):
    rule = Rule.parse(f"confidence | eb({show(value)})")
    assert rule.select == EntropyBound(value)
    assert Rule.parse(str(rule)) == rule


@pytest.mark.parametrize(
    ("value", "shown"), [(5.0, "5"), (0.1, "0.1"), (True, "yes"), (False, "no"), (1e-5, "1e-05")]
)
def test_values_are_shown_shortly(value, shown):
    assert show(value) == shown


def test_braces_expand_in_order():
    assert expand("margin | swd({0,1, 5}) | eb({0.05,0.1})") == [
        "margin | swd(0) | eb(0.05)",
        "margin | swd(0) | eb(0.1)",
        "margin | swd(1) | eb(0.05)",
        "margin | swd(1) | eb(0.1)",
        "margin | swd(5) | eb(0.05)",
        "margin | swd(5) | eb(0.1)",
    ]


def test_braces_may_hold_whole_parts():
    rules = Rule.expand("{confidence,margin} | {top(1),top(2)}")
    assert [str(rule) for rule in rules] == [
        "confidence | top(1)",
        "confidence | top(2)",
        "margin | top(1)",
        "margin | top(2)",
    ]


def test_a_comma_in_the_parentheses_of_a_choice_does_not_end_it():
    rules = expand("margin | {swd(0), swd(5, start=single)} | top({1,2})")
    assert rules == [
        "margin | swd(0) | top(1)",
        "margin | swd(0) | top(2)",
        "margin | swd(5, start=single) | top(1)",
        "margin | swd(5, start=single) | top(2)",
    ]


def test_a_zero_byte_beside_braces_is_not_read_as_a_place_for_choices():
    assert expand("top\0({1,2})") == ["top\0(1)", "top\0(2)"]


def test_a_rule_without_braces_expands_to_itself():
    assert Rule.expand("confidence | top(1)") == [Rule.parse("confidence | top(1)")]


ERRORS = {
    "unknown part": (
        "confidense | top(1)",
        "unknown rule part 'confidense'; did you mean 'confidence'? known: adablock, credit",
    ),
    "unknown part unlike any": ("zzz | top(1)", "unknown rule part 'zzz'; known: "),
    "unknown knob": (
        "confidence | swd(lambda=5) | top(1)",
        "swd has no argument 'lambda'; did you mean 'lam'? arguments: lam, kl, start, form, scope",
    ),
    "a knob for a part without any": (
        "confidence(a=1) | top(1)",
        "confidence has no argument 'a'; arguments: none",
    ),
    "a value for a part without any": (
        "confidence(3) | top(1)",
        "confidence takes no argument, got '3'",
    ),
    "too many values": ("confidence | top(1, 2)", "top takes at most 1 arguments: top(k=1)"),
    "a plain value after a named one": (
        "confidence | swd(lam=5, cur_prev) | top(1)",
        "swd: the plain value 'cur_prev' must stand before key=value: swd(lam=5",
    ),
    "a knob twice": ("confidence | swd(5, lam=3) | top(1)", "swd: lam is given twice"),
    "no number": ("confidence | swd(much) | top(1)", "swd: lam must be a number, got 'much'"),
    "no whole number": ("confidence | top(1.5)", "top: k must be a whole number, got '1.5'"),
    "no truth": ("confidence | klass(gate=true)", "klass: gate must be yes or no, got 'true'"),
    "an unknown word": (
        "confidence | swd(5, kl=cur_prv) | top(1)",
        "swd: kl must be one of prev_cur, cur_prev, js, tv, got 'cur_prv'; did you mean "
        "'cur_prev'?",
    ),
    "an empty path": (
        "confidence | pc(background=) | top(1)",
        "pc: background must not be empty",
    ),
    "an empty value": ("confidence | swd(5,) | top(1)", "swd: kl must be one of"),
    "an empty part": ("confidence | | top(1)", "an empty part in 'confidence | | top(1)'"),
    "an empty rule": ("", "an empty part in ''"),
    "unreadable": ("confidence | top(1", "cannot read 'top(1' in 'confidence | top(1'"),
    "the wrong order": (
        "top(1) | confidence",
        "stands too late in 'top(1) | confidence'; write the parts in the order window | credit",
    ),
    "no score": ("top(1)", "the rule has no score; write for example"),
    "no selection": ("confidence | swd(5)", "the rule has no selection; write for example"),
    "two scores": ("confidence | margin | top(1)", "a rule has one score, got confidence, margin"),
    "two selections": (
        "confidence | top(1) | eb(0.1)",
        "a rule has one selection, got top(1), eb(0.1)",
    ),
    "two revocations": ("confidence | top | revoke(1) | revoke(2)", "a rule has one revocation"),
    "two credits": ("credit | credit | confidence | top", "a rule has one logit stage"),
    "out of range": ("confidence | eb(-1)", "eb: gamma must be >= 0, got -1"),
    "a sweep where one rule is meant": (
        "confidence | swd({0,1,5}) | top({1,2})",
        "is a sweep of 6 rules; give one rule",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_says_what_is_known_and_meant(case):
    text, message = ERRORS[case]
    with pytest.raises(RuleError) as error:
        Rule.parse(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["a {b", "a b}", "{a,{b,c}}", "}{"])
def test_unbalanced_braces_are_named(text):
    with pytest.raises(RuleError, match="unbalanced or nested braces"):
        expand(text)


@pytest.mark.parametrize("text", ["top({})", "top({1,})", "top({1,,2})"])
def test_an_empty_choice_is_named(text):
    with pytest.raises(RuleError, match="an empty choice in the braces"):
        expand(text)


def test_a_part_alone_is_known_though_nothing_has_loaded_the_parts_yet(monkeypatch):
    edit = registry.kind_named("edit")
    monkeypatch.delitem(registry.TABLE, "edit")
    monkeypatch.setattr(registry, "_load", lambda: registry.TABLE.setdefault("edit", edit))
    with pytest.raises(RuleError, match="the rule has no score"):
        Rule.parse("edit")


def test_an_unknown_part_lists_all_that_are_known():
    with pytest.raises(UnknownName) as error:
        Rule.parse("nothing-like-it | top(1)")
    assert all(kind.name in str(error.value) for kind in kinds())


def test_a_rule_from_parts_prints_as_a_rule_from_text():
    parts = parse("margin | swd(2) | top(3)")
    assert Rule.of(parts) == Rule.parse("margin | swd(2) | top(3)")
    assert Rule.of(parts).select == TopK(3)


def test_a_knob_is_never_nan():
    for text in (
        "confidence | ar(nan)",
        "confidence | top(1) | revoke(nan)",
        "confidence | eb(nan)",
    ):
        with pytest.raises(RuleError, match="nan"):
            Rule.parse(text)
    with pytest.raises(RuleError, match=r"certainty: sigma must be from 0\.01 to 1e6, got 1e\+300"):
        Rule.parse("confidence | certainty(1e300) | top(1)")


def test_braces_that_expand_beyond_the_limit_are_refused_with_the_count():
    many = " | ".join(["confidence"] + ["swd({0,1,2,3,4,5,6,7,8,9})"] * 30)
    with pytest.raises(RuleError, match=f"stands for {10**30} rules; braces may stand for 10000"):
        Rule.expand(many)
    with pytest.raises(RuleError, match=f"stands for {10**30} rules"):
        Rule.parse(many)
