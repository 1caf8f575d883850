"""The synthetic suite: its scorers against edits that break the rule, and its problems."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.lab.benchmarks import BENCHMARKS, lists, puzzles
from unmask.lab.benchmarks.lists import OPERATIONS, Case, read, written
from unmask.lab.benchmarks.synthetic import TASKS, synthetic

NAMES = [operation.name for operation in OPERATIONS]
OUTSIDE = "Zeno Zorn"  # in no list


def drawn(name, seed, length=5):
    operation = next(each for each in OPERATIONS if each.name == name)
    _, answer, case = operation.draw(Random(seed), length)
    return operation, read(answer), case


def said(case, name):
    """Every right answer, worked out from what is asked."""
    items, every = case.items, range(len(case.items))
    return {
        "copy": lambda: [items],
        "reverse": lambda: [[items[-1 - i] for i in every]],
        "sort": lambda: [sorted(items)],
        "insert": lambda: [with_at(items, case.place - 1, case.word)],
        "remove": lambda: [[x for i, x in enumerate(items) if i + 1 != case.place]],
        "replace": lambda: [[case.word if i + 1 == case.place else x for i, x in enumerate(items)]],
        "insert-random": lambda: [with_at(items, i, case.word) for i in range(len(items) + 1)],
        "remove-random": lambda: [[x for j, x in enumerate(items) if j != i] for i in every],
        "replace-random": lambda: [
            [case.word if j == i else x for j, x in enumerate(items)] for i in every
        ],
    }[name]()


def with_at(items, place, word):
    changed = list(items)
    changed.insert(place, word)
    return changed


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 2**16), length=st.integers(3, 6))
def test_the_reference_scores(name, seed, length):
    operation, answer, case = drawn(name, seed, length)
    assert operation.solved(case, f"Here you are: {written(answer)}")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "shuffle"])
@given(seed=st.integers(0, 2**16))
def test_all_right_answers_score(name, seed):
    operation, answer, case = drawn(name, seed)
    right = said(case, name)
    assert answer in right
    assert all(operation.solved(case, written(each)) for each in right)


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 2**16), place=st.integers(0, 6), kind=st.integers(0, 4))
def test_any_single_edit_that_breaks_the_rule_does_not_score(name, seed, place, kind):
    operation, answer, case = drawn(name, seed)
    place %= len(answer)
    edited = [
        lambda: answer[:place] + answer[place + 1 :],
        lambda: with_at(answer, place, OUTSIDE),
        lambda: [OUTSIDE if i == place else item for i, item in enumerate(answer)],
        lambda: with_at(answer, place, answer[place]),
        lambda: [item.lower() if i == place else item for i, item in enumerate(answer)],
    ][kind]()
    assert not operation.solved(case, written(edited))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "shuffle"])
@given(seed=st.integers(0, 2**16), place=st.integers(0, 3))
def test_two_names_in_the_wrong_order_do_not_score(name, seed, place):
    operation, answer, case = drawn(name, seed)
    place %= len(answer) - 1
    swapped = list(answer)
    swapped[place : place + 2] = reversed(answer[place : place + 2])
    assert operation.solved(case, written(swapped)) is (swapped in said(case, name))


@given(st.permutations(["Ada Ek", "Bo Lind", "Cy Frisk", "Di Holm"]))
def test_a_shuffle_is_any_other_order(order):
    case = Case(["Ada Ek", "Bo Lind", "Cy Frisk", "Di Holm"], "", 1)
    assert OPERATIONS[-1].solved(case, written(order)) is (order != case.items)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ('["A", "B"]', ["A", "B"]),
        ("['A', 'B']", ["A", "B"]),
        ('First ["A"], then:\n```json\n[" B "]\n```', ["B"]),
        ('["A", "B"', None),
        ('["A", 2]', None),
        ("[A, B]", None),
        ("none", None),
        ("[]", []),
    ],
)
def test_the_last_list_of_a_text_is_read(text, numbers):
    assert read(text) == numbers


@given(seed=st.integers(0, 2**16))
def test_latin_squares_are_right_in_any_valid_order_and_wrong_after_any_change(seed):
    random = Random(seed)
    _, answer, facts = puzzles.draw_latin(random)
    grid = puzzles.read(answer)
    assert puzzles.latin_solved(facts, answer)
    assert puzzles.latin_solved(facts, puzzles.written(random.sample(grid, 4)))
    row, column = random.randrange(4), random.randrange(4)
    grid[row][column] = random.choice([s for s in [*facts[0], "zebra"] if s != grid[row][column]])
    assert not puzzles.latin_solved(facts, puzzles.written(grid))


@given(seed=st.integers(0, 2**16))
def test_sudokus_have_one_solution_and_no_changed_cell_is_it(seed):
    random = Random(seed)
    request, answer, facts = puzzles.draw_sudoku(random)
    assert request.count("_,") + request.count(",_\n") + request.endswith("_") >= 4
    assert puzzles.sudoku_solved(facts, f"The grid:\n{answer}\n")
    grid, place = puzzles.read(answer), random.randrange(16)
    grid[place // 4][place % 4] = str(1 + int(grid[place // 4][place % 4]) % 4)
    assert not puzzles.sudoku_solved(facts, puzzles.written(grid))


@pytest.mark.parametrize("solved", [puzzles.latin_solved, puzzles.sudoku_solved])
@pytest.mark.parametrize("text", ["", "a,b,c,d", "a,b,c\nd", "a,b,c,d\n" * 3, "a,b,c,d\n" * 5])
def test_texts_that_are_no_grid_are_wrong(solved, text):
    assert not solved([["a", "b", "c", "d"]] * 4, text)


def test_the_last_run_of_lines_is_the_grid():
    text = "1,2,3,4\nNo, wait.\n\n4, 3, 2, 1\n3,4,1,2"
    assert puzzles.read(text) == [["4", "3", "2", "1"], ["3", "4", "1", "2"]]


def test_the_suite_has_twelve_tasks_of_a_hundred_with_lists_of_every_length():
    examples = BENCHMARKS["synthetic"].load()
    assert Counter(example.group for example in examples) == dict.fromkeys(TASKS, 100)
    lengths = Counter(len(e.fields["facts"].items) for e in examples if e.group == "copy")
    assert lengths == {3: 25, 4: 25, 5: 25, 6: 25}
    assert len({example.slots["request"] for example in examples}) == len(examples)


def test_the_same_seed_gives_the_same_problems_and_another_seed_others():
    one, same, other = (synthetic("s", ("sudoku",), 5, seed).load() for seed in (0, 0, 1))
    assert one == same
    assert [e.slots for e in one] != [e.slots for e in other]


def test_one_solved_example_of_the_same_task_goes_before_as_a_turn():
    benchmark = BENCHMARKS["synthetic-insert"]
    example = benchmark.load()[0]
    user, assistant, question = benchmark.prompt(example, "own").messages
    assert (user["role"], assistant["role"], question["role"]) == ("user", "assistant", "user")
    assert json.loads(assistant["content"])
    assert example.fields["facts"].word in question["content"]
    assert lists.FORM in user["content"]
    assert user["content"] != question["content"]
