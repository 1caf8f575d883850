"""Grids: all squares that obey the rules are accepted, and no others."""

from __future__ import annotations

from itertools import islice, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.embedded.tasks import TASKS
from unmask.embedded.tasks.grids import LATIN, SUDOKU, read_grid
from unmask.embedded.tasks.problem import Problem

PROBLEMS = {
    name: list(islice(TASKS[name].problems("train", seed=3), 200)) for name in ("latin", "sudoku")
}
one_problem = {name: st.sampled_from(problems) for name, problems in PROBLEMS.items()}
both = pytest.mark.parametrize("name", ["latin", "sudoku"])


def text(rows):
    return "\n".join(" ".join(map(str, row)) for row in rows)


def solved(problem, rows):
    return TASKS[problem.task].solved(problem, text(rows))


def sudoku(grid, holes):
    return Problem("sudoku", "", "", "", (grid, tuple(holes)))


def differences(one, other):
    return [i for i in range(16) if one[i // 4][i % 4] != other[i // 4][i % 4]]


def numbered(grid):
    return [[cell + 1 for cell in row] for row in grid]


def test_there_are_576_latin_squares_and_288_sudokus():
    assert len(set(LATIN)) == len(LATIN) == 576
    assert len(set(SUDOKU)) == len(SUDOKU) == 288


def test_the_squares_repeat_nothing_in_a_row_a_column_or_a_box():
    whole = {0, 1, 2, 3}
    assert all(set(line) == whole for grid in LATIN for line in (*grid, *zip(*grid, strict=True)))
    for a, b, c, d in SUDOKU:
        assert {*a[:2], *b[:2]} == {*c[2:], *d[2:]} == {*a[2:], *b[2:]} == {*c[:2], *d[:2]} == whole


@given(problem=one_problem["latin"], grid=st.sampled_from(LATIN))
def test_every_latin_square_of_the_words_is_accepted(problem, grid):
    assert solved(problem, [[problem.facts[cell] for cell in row] for row in grid])


@both
@given(data=st.data())
def test_a_single_other_cell_is_rejected(name, data):
    problem = data.draw(one_problem[name])
    rows = read_grid(problem.answer)
    row, column = data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    rows[row][column] = data.draw(
        st.sampled_from(sorted({*rows[0], "yeti", "0", "5", "_"} - {rows[row][column]}))
    )
    assert not solved(problem, rows)


@both
@given(data=st.data())
def test_two_cells_of_a_row_in_each_others_place_are_rejected(name, data):
    problem = data.draw(one_problem[name])
    rows = read_grid(problem.answer)
    row = data.draw(st.integers(0, 3))
    one, other = data.draw(st.permutations(range(4)))[:2]
    rows[row][one], rows[row][other] = rows[row][other], rows[row][one]
    assert not solved(problem, rows)


@both
@given(data=st.data())
def test_a_row_or_a_cell_too_few_or_too_many_is_rejected(name, data):
    problem = data.draw(one_problem[name])
    rows = read_grid(problem.answer)
    place = data.draw(st.integers(0, 3))
    assert not solved(problem, rows[:place] + rows[place + 1 :])
    assert not solved(problem, [*rows, rows[place]])
    assert not solved(problem, [row[:3] if i == place else row for i, row in enumerate(rows)])
    assert not solved(problem, [row * 2 if i == place else row for i, row in enumerate(rows)])
    assert not solved(problem, [row[:3] for row in rows])
    assert not solved(problem, [["Here:"], *rows])


@both
def test_blank_lines_and_wide_gaps_do_not_matter(name):
    problem = PROBLEMS[name][0]
    wide = problem.answer.replace(" ", "   ").replace("\n", " \n\n ")
    assert TASKS[name].solved(problem, wide)


def test_a_latin_square_of_other_words_is_rejected():
    one, other = PROBLEMS["latin"][:2]
    assert not TASKS["latin"].solved(one, other.answer)


def test_a_sudoku_shows_twelve_cells_of_its_answer():
    for problem in PROBLEMS["sudoku"]:
        title, *rows = problem.prompt.splitlines()
        shown = " ".join(rows).split()
        assert title == "Sudoku:"
        assert len(shown) == 16
        assert shown.count("_") == 4
        pairs = zip(shown, problem.answer.split(), strict=True)
        assert all(cell in ("_", right) for cell, right in pairs)


@given(one=st.sampled_from(SUDOKU), other=st.sampled_from(SUDOKU))
def test_a_sudoku_that_changes_a_given_cell_is_rejected(one, other):
    assert solved(sudoku(one, [0, 5, 10, 15]), numbered(other)) == (
        set(differences(one, other)) <= {0, 5, 10, 15}
    )


def test_where_the_holes_leave_two_ways_to_fill_them_both_are_right():
    one, other = next(pair for pair in permutations(SUDOKU, 2) if len(differences(*pair)) == 4)
    holes = differences(one, other)
    assert solved(sudoku(one, holes), numbered(one))
    assert solved(sudoku(one, holes), numbered(other))
    assert not solved(sudoku(one, [*holes[1:], 15 - holes[0]]), numbered(other))


@pytest.mark.parametrize("digit", ["１", "¹", "01", "1.", "+1", "1,"])
def test_a_cell_is_one_plain_digit(digit):
    problem = PROBLEMS["sudoku"][0]
    assert not TASKS["sudoku"].solved(problem, problem.answer.replace("1", digit))
