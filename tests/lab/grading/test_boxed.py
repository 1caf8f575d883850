"""Boxes: ours and the MATH scripts'."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.lab.grading.boxed import boxes, last_box, math_box

nested = st.recursive(
    st.text("ab1+\\frac ", max_size=5).map(lambda text: text.replace("\\", "")),
    lambda inner: st.lists(inner, max_size=3).map(lambda parts: "{" + "}{".join(parts) + "}"),
    max_leaves=6,
)


@given(nested, nested)
def test_braces_are_matched_at_any_depth(first, second):
    text = rf"so \boxed{{{first}}} or ${{\boxed{{{second}}}}}$ it is"
    assert boxes(text) == [first, second]


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        (r"\boxed{1} and \boxed{2", ["1"]),
        (r"\boxed{\{1, 2\}}", [r"\{1, 2\}"]),
        (r"\boxed{\left\{x\right.}", [r"\left\{x\right."]),
        (r"\boxed {5}", ["5"]),
        (r"\boxed 5.", ["5"]),
        (r"\fbox{6}", ["6"]),
        (r"\boxed{}", [""]),
        (r"\boxes{7}", []),
    ],
)
def test_only_boxes_that_close_count_and_escaped_braces_are_no_braces(text, inside):
    assert boxes(text) == inside


def test_the_last_box_with_anything_in_it_is_the_answer():
    assert last_box(r"\boxed{ 4 } \boxed{ }") == "4"
    assert last_box("none") is None


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        (r"\boxed{1} and \boxed{\frac{1}{2}}<|eot_id|>", r"\frac{1}{2}"),
        (r"\boxed{1} and \boxed{2", None),
        ("no box", "no box"),
        (r"\fbox{6}", r"\fbox{6}"),
        (r"$\boxed 5$ and 6", "5"),
        (r"\boxed{1} \boxed 2$", "2"),
    ],
)
def test_the_math_scripts_read_whole_texts_and_give_up_on_open_boxes(text, inside):
    assert math_box(text) == inside
