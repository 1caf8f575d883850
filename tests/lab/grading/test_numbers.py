"""GSM8K's rule: which number is the answer."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.lab.grading.numbers import all_numbers, answer_number, first_number


@pytest.mark.parametrize(
    ("text", "value", "rule"),
    [
        (r"First \boxed{3}, then \boxed{18}.", 18, "box"),
        (r"\boxed{18} is the number of the 4 eggs", 18, "box"),
        (r"\boxed{7} and \boxed{\text{eggs}}", 7, "box"),
        (r"So \boxed{18 and 5 more: the answer is 20", 20, "phrase"),
        ("The answer is 18. That took 3 steps.", 18, "phrase"),
        ("The ANSWER is:\n\n**18** of 20", 18, "phrase"),
        ("The answer is 5 * 3 = 15 dollars", 15, "phrase"),
        ("the answer is clear: 3 + 4 = 7\nor rather 8", 7, "phrase"),
        ("the answer is clear.\n3 + 4 = 7", 7, "last"),
        ("It costs $1,080.50 in all, or 12", 12, "last"),
        ("no number at all", None, "none"),
        ("", None, "none"),
    ],
)
def test_the_last_box_goes_before_the_phrase_and_that_before_the_last_number(text, value, rule):
    assert answer_number(text) == (value, rule)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,080", 1080),
        (r"10,\!080", 10080),
        ("1{,}000", 1000),
        (r"2\,000", 2000),
        (r"\$18.90", Fraction("18.9")),
        ("$-5", -5),
        ("-$5", -5),
        ("−5", -5),
        ("10-5", 10),
        (r"18 \text{ m}^2", 18),
        (r"10\%", 10),
        ("x = 5", 5),
        (r"\frac{1}{2}", Fraction(1, 2)),
        (r"3\frac{1}{2}", Fraction(7, 2)),
        (r"-\dfrac{3}{4}", Fraction(-3, 4)),
        ("9/2", Fraction(9, 2)),
        (r"\frac{1}{0}", None),
        ("1,08", 1),
        (".5", Fraction(1, 2)),
        ("33.00", 33),
        (r"\text{none}", None),
    ],
)
def test_commas_money_and_units_are_no_part_of_a_number(text, value):
    assert first_number(text) == value


def test_a_minus_between_numbers_subtracts():
    assert all_numbers("10 - 5 = 5, 3-2, (4)-1 and -7") == [10, 5, 5, 3, 2, 4, 1, -7]


@given(st.integers(-(10**9), 10**9), st.sampled_from(["{}", "{:,}", "{}.0", "{:,}.00", "${:,}"]))
def test_every_way_to_write_a_whole_number_is_read(number, form):
    for text in (r"so \boxed{%s} eggs in 3 nests", "The answer is %s.", "3 nests, so %s"):
        assert answer_number(text % form.format(number)).value == number


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(0, 6))
def test_a_changed_digit_is_another_number(number, more, place):
    digits = list(f"{number:07}")
    digits[place] = str((int(digits[place]) + more) % 10)
    assert answer_number(rf"\boxed{{{''.join(digits)}}}").value != number


@pytest.mark.parametrize("endless", ["7" * 6000, "1" + ",000" * 2000, "7/" + "7" * 6000])
def test_endless_digits_are_no_number(endless):
    assert answer_number(rf"12 eggs {endless} \boxed{{{endless}}}").value in (12, 7)


@given(st.text(max_size=60))
def test_no_text_breaks_the_rule(text):
    answer_number(text)
    answer_number(rf"\boxed{{{text}}}")
