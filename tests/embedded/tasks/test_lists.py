"""Lists of words: each task against a direct reading of its prompt."""

from __future__ import annotations

import re
from itertools import islice, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.embedded.tasks import TASKS
from unmask.embedded.tasks.lists import LISTS, read_list
from unmask.embedded.tasks.vocabulary import ITEMS

NAMES = [task.name for task in LISTS]
PROBLEMS = {task.name: list(islice(task.problems("train", seed=2), 100)) for task in LISTS}


def all_right(prompt):
    """Every right answer to a prompt."""
    request, items = prompt.removesuffix(".").split(": ")
    items = items.split(", ")
    every = range(len(items))
    match re.sub(r"\d", "0", request).split():
        case ["Copy"] | ["Repeat"]:
            return [items]
        case ["Reverse"] | ["Write", "backwards"]:
            return [list(reversed(items))]
        case ["Sort"] | ["Put", "in", "order"]:
            return [sorted(items)]
        case ["Insert", word, "at", _]:
            return [changed(items, int(request.split()[-1]) - 1, 0, word)]
        case ["Remove", "at", _]:
            return [changed(items, int(request.split()[-1]) - 1, 1)]
        case ["Replace", "at", _, "by", word]:
            return [changed(items, int(request.split()[2]) - 1, 1, word)]
        case ["Insert", word, "anywhere"]:
            return [changed(items, place, 0, word) for place in range(len(items) + 1)]
        case ["Remove", "any", "one"]:
            return [changed(items, place, 1) for place in every]
        case ["Replace", "any", "one", "by", word]:
            return [changed(items, place, 1, word) for place in every]
        case ["Shuffle"]:
            return [list(other) for other in permutations(items) if list(other) != items]
    raise AssertionError(request)


def changed(items, place, taken, *put):
    copy = list(items)
    copy[place : place + taken] = put
    return copy


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_what_the_prompt_asks_for(name):
    for problem in PROBLEMS[name]:
        assert problem.answer.split(", ") in all_right(problem.prompt), problem


@pytest.mark.parametrize("name", NAMES)
def test_every_right_answer_is_accepted(name):
    for problem in PROBLEMS[name][:10]:
        for answer in all_right(problem.prompt):
            assert TASKS[name].solved(problem, ", ".join(answer)), (problem, answer)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_a_single_edit_is_judged_by_the_prompt(name, data):
    problem = data.draw(st.sampled_from(PROBLEMS[name]))
    answer = problem.answer.split(", ")
    place = data.draw(st.integers(0, len(answer) - 1))
    word = data.draw(st.sampled_from(sorted({*ITEMS, *answer})))
    swapped = changed(answer, place, 2, *answer[place : place + 2][::-1])
    for edited in (
        changed(answer, place, 1),
        changed(answer, place, 1, word),
        changed(answer, place, 0, word),
        changed(answer, place, 1, answer[place], answer[place]),
        changed(answer, place, 1, ""),
        swapped,
        answer[:place],
    ):
        right = edited in all_right(problem.prompt)
        assert TASKS[name].solved(problem, ", ".join(edited)) == right, (problem, edited)


@pytest.mark.parametrize("name", ["copy", "reverse", "sort", "insert", "remove", "replace"])
def test_where_one_answer_is_right_the_list_itself_tells_it(name):
    assert all(len(all_right(problem.prompt)) == 1 for problem in PROBLEMS[name])


def test_a_list_is_shuffled_into_another_order():
    problem = PROBLEMS["shuffle"][0]
    items = problem.prompt.removesuffix(".").split(": ")[1]
    assert not TASKS["shuffle"].solved(problem, items)


def test_a_list_is_in_one_split_for_all_tasks():
    contents = {problem.content for name in NAMES for problem in PROBLEMS[name]}
    assert all(re.fullmatch(r"lists( [a-z]+){3,6}", content) for content in contents)


def test_a_list_holds_no_word_twice():
    for problems in PROBLEMS.values():
        for problem in problems:
            words = problem.content.split()
            assert len(set(words)) == len(words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ant, bee", ["ant", "bee"]),
        ("ant,bee.", ["ant", "bee"]),
        ("  ant ,  bee .\n\n", ["ant", "bee"]),
        ("Here it is:\nant, bee", ["ant", "bee"]),
        ("ant., bee", ["ant.", "bee"]),
        ("ant, bee..", ["ant", "bee."]),
        ("ant, , bee", ["ant", "", "bee"]),
        ("ant bee", ["ant bee"]),
        ("", [""]),
    ],
)
def test_a_list_is_read_from_the_last_line_up_to_a_full_stop(text, words):
    assert read_list(text) == words
