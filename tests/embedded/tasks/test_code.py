"""Small functions: the references do what they should in real Python, and near misses fail."""

from __future__ import annotations

import re
from copy import deepcopy
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.embedded.tasks.code import CODE
from unmask.embedded.tasks.interpreter import call, parse
from unmask.embedded.tasks.problem import Problem
from unmask.embedded.tasks.vocabulary import FUNCTIONS

PROBLEMS = list(islice(CODE.problems("train", seed=4), 600))
NUMBERS = list(range(-15, 16))
LISTS = [[], *([n] for n in NUMBERS), NUMBERS, NUMBERS[::-1], [5, -3, 5, 0, 12, 7, 0, 2]]
SIGNS = {"+": "-", "-": "+", "*": "+", ">": "<", "<": ">", "> ": ">= ", "< ": "<= ", "1]": "2]"}


def real(text, name):
    """The function as Python defines it."""
    names = {}
    exec(text, names)
    return names[name]


def other_inputs(problem):
    return LISTS if "(xs)" in problem.prompt else NUMBERS


def asked(*tests):
    return Problem("code", "", "", "", ("f", list(tests)))


def edits(text):
    """The program with one number or sign changed, if it is still a program."""
    for number in re.finditer(r"\d+", text):
        for other in (int(number[0]) - 1, int(number[0]) + 1):
            yield f"{text[: number.start()]}{other}{text[number.end() :]}"
    for sign, other in SIGNS.items():
        for place in re.finditer(re.escape(sign), text):
            yield f"{text[: place.start()]}{other}{text[place.end() :]}"


def results(text, name, inputs):
    """The results of a program for each input; None if it is invalid or fails."""
    try:
        function = real(text, name)
        return [repr(function(deepcopy(given))) for given in inputs]
    except (SyntaxError, TypeError, ArithmeticError):
        return None


def test_the_references_are_python_and_pass_their_tests_there():
    for problem in PROBLEMS:
        name, tests = problem.facts
        function = real(problem.answer, name)
        for given_, wanted in tests:
            assert repr(function(deepcopy(given_))) == repr(wanted), problem


def test_the_interpreter_runs_the_references_as_python_does():
    for problem in PROBLEMS:
        name = problem.facts[0]
        program, function = parse(problem.answer), real(problem.answer, name)
        for given_ in other_inputs(problem):
            actual = call(program, name, given_)
            assert repr(actual) == repr(function(deepcopy(given_))), (problem, given_)


def test_a_changed_number_or_sign_is_noticed():
    """A near miss fails the tests, unless it does the same on all inputs."""
    misses = 0
    for problem in PROBLEMS[:250]:
        name, inputs = problem.facts[0], other_inputs(problem)
        wanted = results(problem.answer, name, inputs)
        for text in edits(problem.answer):
            if CODE.solved(problem, text):
                assert results(text, name, inputs) == wanted, (problem, text)
            else:
                misses += 1
    assert misses > 1000


def test_programs_for_other_specifications_fail():
    for one, other in pairwise(PROBLEMS):
        text = re.sub(rf"\b{other.facts[0]}\b", one.facts[0], other.answer, count=1)
        if CODE.solved(one, text):
            inputs = other_inputs(one)
            wanted = results(one.answer, one.facts[0], inputs)
            assert results(text, one.facts[0], inputs) == wanted, (one, text)


@pytest.mark.parametrize(
    ("opening", "share"),
    [
        (r"def \w+\(x\):\n    x = .+\n    x = ", 1 / 6),
        (r"def \w+\(x\): return (?!.* if )", 1 / 6),
        (r"\w+ = lambda x: ", 1 / 6),
        (r"def \w+\(x\):\n    if .+:\n        return .+\n    return ", 1 / 15),
        (r"def \w+\(x\):\n    return .+ if .+ else ", 1 / 15),
        (r"def \w+\(x\): return .+ if .+ else ", 1 / 15),
        (r"def \w+\(xs\):\n    xs = \[.+\]\n    return ", 0.15),
        (r"def \w+\(xs\): return ", 0.15),
    ],
)
def test_programs_come_in_several_styles(opening, share):
    actual = sum(re.match(opening, problem.answer) is not None for problem in PROBLEMS)
    assert actual / len(PROBLEMS) == pytest.approx(share, abs=0.06)


def test_the_name_of_the_function_is_no_content():
    assert {problem.facts[0] for problem in PROBLEMS} == set(FUNCTIONS)
    assert not any(re.search(r"\(|Write", problem.content) for problem in PROBLEMS)


def test_grading_never_changes_the_tests():
    problem = next(problem for problem in PROBLEMS if "(xs)" in problem.prompt)
    name, tests = problem.facts
    before = deepcopy(tests)
    CODE.solved(
        problem, f"def {name}(xs):\n    xs += [1]\n    ys = xs\n    ys += xs\n    return xs"
    )
    assert tests == before


def test_a_function_may_return_the_list_that_it_was_given():
    assert CODE.solved(asked(([2, 1], [2, 1])), "f = lambda xs: xs")


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (1, "x == 3"),
        (0, "x != 3"),
        (3, "[x]"),
        (3, "None"),
        ([1], "[x == 3]"),
        ([3], "x"),
        ([3], "[x, None]"),
        ([3], "[[x]]"),
        ([3], "(y for y in [x])"),
        ([], "None"),
        (0, "[]"),
    ],
)
def test_a_result_of_another_type_is_wrong(wanted, code):
    assert not CODE.solved(asked((3, wanted)), f"f = lambda x: {code}")


def test_a_function_without_a_return_is_wrong():
    assert not CODE.solved(asked((3, 4)), "def f(x):\n    x = x + 1")


def test_of_two_definitions_the_last_counts():
    right, wrong = "f = lambda x: x + 1", "def f(x): return x"
    assert CODE.solved(asked((3, 4)), f"{wrong}\n{right}")
    assert not CODE.solved(asked((3, 4)), f"{right}\n{wrong}")


@pytest.mark.parametrize(
    "text",
    [
        "def f(x): return x + 1\nThis adds one.",
        "def f(x): return x + 1\nDone",
        "Here it is:\ndef f(x): return x + 1",
        "```python\ndef f(x): return x + 1\n```",
        "def g(x): return x + 1",
        "def f(x, y): return x + 1",
        "def f(): return 4",
        "def f(x): return x + 1\nf(3)",
        "x + 1",
    ],
)
def test_a_text_that_is_not_just_the_function_is_wrong(text):
    assert not CODE.solved(asked((3, 4)), text)


@pytest.mark.parametrize(
    "text",
    [
        "\n  def f(x):\n    return x + 1\n\n",
        "def f(x): return x + 1  # one more",
        "def f(y): z = y; return z - -1",
        "g = lambda x: 0\nf = lambda x: 1 + x",
    ],
)
def test_the_function_may_be_written_in_any_way(text):
    assert CODE.solved(asked((3, 4), (-1, 0)), text)


@given(text=st.text(alphabet="defx(s):\n =lambda+-*%[]0123rtun,", max_size=80))
def test_scraps_of_programs_are_judged_without_an_error(text):
    assert CODE.solved(PROBLEMS[0], f"f = lambda x: {text}") in (True, False)
