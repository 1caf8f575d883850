"""Scoring many answers: one of them never stops the others."""

from __future__ import annotations

import pytest

from unmask.errors import UnmaskError
from unmask.lab.benchmarks.example import Example
from unmask.lab.grading.response import Response
from unmask.lab.grading.scorer import LONGEST, Ruling, Scorer, score
from unmask.lab.grading.tools import Tools

EXAMPLE = Example("1", 0, {}, "yes", {})


def scored(rule, *texts):
    answers = [(EXAMPLE, Response(text)) for text in texts]
    return dict(score(answers, [Scorer("own", "", rule)], Tools()))


def test_an_answer_that_breaks_a_scorer_is_wrong_and_the_others_are_graded():
    def rule(_, response, __):
        if response.text == "deep":
            raise RecursionError("too deep")
        return Ruling(response.text == "yes")

    marks = scored(rule, "yes", "deep", "yes", "no")
    assert [marks[number]["own"].right for number in range(4)] == [True, False, True, False]
    assert marks[1]["own"].detail == {"failed": "RecursionError: too deep"}


def test_an_answer_that_is_too_long_is_wrong_and_not_read():
    def rule(_, response, __):
        assert len(response.text) <= LONGEST
        return Ruling(True)

    marks = scored(rule, "x" * LONGEST, "x" * (LONGEST + 1))
    assert [marks[number]["own"].right for number in range(2)] == [True, False]
    assert marks[1]["own"].detail["failed"].startswith("the answer has more than 65536")


def test_what_every_answer_needs_is_still_an_error():
    def rule(_, __, ___):
        raise UnmaskError("comparing formulas needs math-verify")

    with pytest.raises(UnmaskError, match="needs math-verify"):
        scored(rule, "yes")
