"""Answers compared as strings: d1's and DAEDAL's rules, KLASS's and the harnesses'."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.lab.grading import harness, klass
from unmask.lab.grading.mathstrings import d1_equal, d1_extract, daedal_equal, daedal_extract


@pytest.mark.parametrize(
    ("answer", "gold", "d1", "daedal"),
    [
        (r"\dfrac12", r"\frac{1}{2}", True, True),
        ("0.5", r"\frac{1}{2}", True, True),
        ("1/2", r"\frac{1}{2}", True, True),
        ("x/2", r"\frac{x}{2}", False, False),
        (r"\sqrt3", r"\sqrt{3}", True, True),
        (r"\left(3, 4\right)", "(3,4)", True, True),
        ("k = 7", "7", True, True),
        ("sum = 7", "7", False, False),
        (r"36^\circ", "36", True, True),
        (r"15\text{ cm}", "15", True, True),
        (r"15\text{ cm}\text{ or }", "15", False, False),
        (r"\$5", "5", True, True),
        (r"50\%", "50", True, True),
        (".5", "0.5", True, True),
        ("10,080", "10080", False, True),
        (r"10,\!080", "10080", False, False),
        ("7.0", "7", False, True),
        ("0.25", r"\frac{1}{4}", False, False),
        (r"\frac", "1", False, False),
        (r"\sqrt", r"\sqrt", True, True),
        (None, "5", False, False),
        ("18", "180", False, False),
        ("x", "xy", False, False),
    ],
)
def test_the_two_scripts_differ_where_they_differ(answer, gold, d1, daedal):
    assert d1_equal(answer, gold) is d1
    assert daedal_equal(answer, gold) is daedal


def test_an_open_box_falls_back_to_the_answer_tag():
    text = r"<answer> 5 </answer> \boxed{6"
    assert d1_extract(text) == daedal_extract(text) == "5"
    assert d1_extract(r"\boxed{6") is daedal_extract(r"\boxed{6") is None


def test_a_text_without_a_box_is_compared_whole():
    assert daedal_equal(daedal_extract("5"), "5")
    assert not daedal_equal(daedal_extract("It is 5"), "5")


@given(st.integers(-(10**6), 10**6), st.integers(1, 9))
def test_references_score_and_other_numbers_do_not(number, more):
    text = rf"so \boxed{{{number}}}"
    for extract, equal in ((d1_extract, d1_equal), (daedal_extract, daedal_equal)):
        assert equal(extract(text), str(number))
        assert not equal(extract(text), str(number + more))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (r"The answer is \boxed{12 eggs} of 30", "12"),
        (r"\boxed{33.00}", "33"),
        (r"\boxed{1,234}", "1"),
        (r"\boxed{x}", "x"),
        ("the answer is 1,234 of 5", "1234"),
        ("3 and 4.50", "4.5"),
        ("none", ""),
    ],
)
def test_klass_reads_numbers_in_its_own_way(text, number):
    assert klass.number_answer(text) == number


def test_klass_by_the_letter_keeps_zeros_in_a_box():
    assert klass.number_answer(r"\boxed{33.00}", letter=True) == "33.00"
    assert klass.gold_number("so\n#### 1,033.00") == "1033"


@pytest.mark.parametrize(
    ("problem", "solution", "text", "right"),
    [
        ("What is it?", r"\boxed{\frac{1}{4}}", "The answer is 0.25.", True),
        ("What is it?", r"\boxed{5}", r"\boxed{5} or \boxed{6}", True),
        ("What is it?", r"\boxed{5}", "in the end 5 apples", True),
        ("What is it?", r"\boxed{5}", "it is 15", False),
        ("Roots, separated by commas.", r"\boxed{1,2}", r"\boxed{2, 1}", True),
        ("Roots, separated by commas.", r"\boxed{1,\frac{1}{2}}", r"\boxed{0.5,1}", True),
        ("Roots, separated by commas.", r"\boxed{1,2}", r"\boxed{1,3}", False),
        ("Write it in the form a=b.", r"\boxed{x=5}", r"\boxed{5}", False),
        ("What is x?", r"\boxed{x=5}", r"\boxed{5}", True),
        ("Who?", r"\boxed{3\text{ and }4}", r"\boxed{4}", True),
    ],
)
def test_klass_takes_any_answer_against_any_gold_one(problem, solution, text, right):
    assert klass.math_equal(problem, solution, text) is right


@given(
    st.text(alphabet="\\{}boxedfrac12,/=.$ is\n", max_size=40),
    st.sampled_from(["", "separated by commas"]),
)
def test_no_text_breaks_klass(text, problem):
    klass.answers(problem, text)
    klass.number_answer(text)


def test_endless_digits_break_no_scorer():
    digits = "7" * 4500
    text = rf"\boxed{{\frac{{{digits}}}{{3}}}} {digits}/{digits}"
    assert not klass.math_equal("", r"\boxed{5}", text)
    assert not daedal_equal(daedal_extract(text), "5")
    assert not d1_equal(d1_extract(text), "5")
    assert not harness.opencompass_equal(digits, "5")
    assert not harness.flexible_equal(digits, "#### 5")
    assert harness.d1_number(rf"\boxed{{{digits}}}") == float("inf")


@pytest.mark.parametrize(
    ("text", "flexible", "letter", "opencompass"),
    [
        ("so 1,033", True, True, False),
        ("so $1033.", True, True, True),
        ("so 1033.00", True, False, True),
        ("so 1033 of 5", False, False, False),
        ("none", False, False, False),
        ("1033 Question: 5?", False, False, True),
    ],
)
def test_the_last_number_as_harnesses_see_it(text, flexible, letter, opencompass):
    gold = "so\n#### 1,033"
    assert harness.flexible_equal(text, gold) is flexible
    assert harness.flexible_equal(text, gold, letter=True) is letter
    assert harness.opencompass_equal(text, "1,033") is opencompass


def test_strict_rules_want_their_phrases():
    assert harness.strict_equal("so\n#### 1,033", "x #### 1033")
    assert not harness.strict_equal("so 1033", "x #### 1033")
    assert (
        harness.strict_phrase("Final Answer: The final answer is $5$. I hope it is correct.")
        == "$5$"
    )
    assert harness.strict_phrase("The final answer is 5.") is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (r"\boxed{...} \boxed{5} \boxed{6}", 5),
        (r"\boxed{\$5.5 each}", 5.5),
        (r"\boxed{x}<answer>about 7 or 8</answer>", 8),
        ("<answer>9</answer>", 9),
        ("9", None),
    ],
)
def test_d1_takes_the_first_box_with_a_number(text, number):
    assert harness.d1_number(text) == number
