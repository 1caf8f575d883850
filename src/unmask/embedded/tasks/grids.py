"""4x4 grids: latin squares of given words, and sudokus with twelve of sixteen cells given."""

from __future__ import annotations

from itertools import permutations
from random import Random

from unmask.embedded.tasks.problem import Problem, Task
from unmask.embedded.tasks.vocabulary import ITEMS

Grid = tuple[tuple[int, ...], ...]
_ROWS = tuple(permutations(range(4)))
_HOLES = 4


def _latin_squares() -> tuple[Grid, ...]:
    """All 576 latin squares of order four."""

    def fits(rows: Grid, row: tuple[int, ...]) -> bool:
        return all(a != b for above in rows for a, b in zip(above, row, strict=True))

    grids: list[Grid] = [()]
    for _ in range(4):
        grids = [(*rows, row) for rows in grids for row in _ROWS if fits(rows, row)]
    return tuple(grids)


def _is_sudoku(grid: Grid) -> bool:
    boxes = [{grid[r + i][c + j] for i in (0, 1) for j in (0, 1)} for r in (0, 2) for c in (0, 2)]
    return all(len(box) == 4 for box in boxes)


LATIN = _latin_squares()
SUDOKU = tuple(grid for grid in LATIN if _is_sudoku(grid))


def read_grid(text: str) -> list[list[str]]:
    """The words of every line that is not empty."""
    return [line.split() for line in text.splitlines() if line.strip()]


def _draw_latin(random: Random) -> Problem:
    words = random.sample(ITEMS, 4)
    grid = random.choice(LATIN)
    answer = "\n".join(" ".join(words[cell] for cell in row) for row in grid)
    prompt = f"Latin square: {', '.join(words)}."
    return Problem("latin", prompt, answer, f"latin {' '.join(words)}", words)


def _latin_solved(problem: Problem, text: str) -> bool:
    grid, words = read_grid(text), sorted(problem.facts)
    if [len(row) for row in grid] != [4] * 4:
        return False
    return all(sorted(line) == words for line in [*grid, *zip(*grid, strict=True)])


def _numbered(grid: Grid) -> list[list[str]]:
    return [[str(cell + 1) for cell in row] for row in grid]


def _draw_sudoku(random: Random) -> Problem:
    grid = random.choice(SUDOKU)
    holes = set(random.sample(range(16), _HOLES))
    content = f"sudoku {grid} {sorted(holes)}"
    lines = _numbered(grid)
    given = [
        ["_" if 4 * r + c in holes else cell for c, cell in enumerate(row)]
        for r, row in enumerate(lines)
    ]
    prompt = "Sudoku:\n" + "\n".join(" ".join(row) for row in given)
    answer = "\n".join(" ".join(row) for row in lines)
    return Problem("sudoku", prompt, answer, content, (grid, tuple(sorted(holes))))


def _sudoku_solved(problem: Problem, text: str) -> bool:
    """Whether the text is a sudoku that keeps the given cells."""
    grid, holes = problem.facts
    answer, given = read_grid(text), _numbered(grid)
    if answer not in map(_numbered, SUDOKU):
        return False
    return all(answer[i // 4][i % 4] == given[i // 4][i % 4] for i in range(16) if i not in holes)


GRIDS = (
    Task("latin", "a 4x4 latin square of four words", _draw_latin, _latin_solved),
    Task("sudoku", "a 4x4 sudoku with four holes", _draw_sudoku, _sudoku_solved),
)
