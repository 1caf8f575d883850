"""Sums: every result is right, and only the whole list in order counts."""

import re
from itertools import islice

import pytest

from unmask.embedded.tasks.sums import SUMS
from unmask.embedded.tasks.words import LARGEST

PROBLEMS = list(islice(SUMS.problems("train"), 300))


def test_every_sum_comes_to_what_is_written():
    for problem in PROBLEMS:
        parts = re.findall(r"(\d+) ([-+*]) (\d+) = (\d+)\.", problem.answer)
        assert len(parts) == len(problem.facts)
        for a, sign, b, result in parts:
            value = {"+": int(a) + int(b), "-": int(a) - int(b), "*": int(a) * int(b)}[sign]
            assert value == int(result)
            assert 0 < value <= LARGEST


def test_there_are_two_to_five_sums_of_every_kind():
    assert {len(problem.facts) for problem in PROBLEMS} == {2, 3, 4, 5}
    text = " ".join(problem.answer for problem in PROBLEMS)
    assert all(f" {sign} " in text for sign in "+-*")


def test_a_wrong_missing_swapped_or_further_sum_does_not_count():
    problem = next(p for p in PROBLEMS if len(set(p.facts)) >= 3)
    first, second, *rest = [f"{left} = {right}." for left, right in problem.facts]
    assert SUMS.solved(problem, f"So {' '.join([first, second, *rest])}")
    assert not SUMS.solved(problem, f"So {' '.join([second, first, *rest])}")
    assert not SUMS.solved(problem, f"So {' '.join([first, *rest])}")
    assert not SUMS.solved(problem, f"So {' '.join([first, second, *rest, '1 + 1 = 2.'])}")
    wrong = re.sub(r"= \d+", "= 61", first)
    assert not SUMS.solved(problem, f"So {' '.join([wrong, second, *rest])}")


@pytest.mark.parametrize("text", ["", "So", ".", "So .", "#### 3"])
def test_other_texts_do_not_count(text):
    assert not SUMS.solved(PROBLEMS[0], text)
