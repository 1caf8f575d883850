"""Latin squares and sudoku of four by four, for chat models, as lines of comma-separated cells."""

from __future__ import annotations

from itertools import groupby
from random import Random

from unmask.embedded.tasks.grids import LATIN, SUDOKU

Cells = list[list[str]]
Drawn = tuple[str, str, Cells]  # a request, an answer, and the facts that the checker needs

SYMBOLS = (
    "arrow", "bell", "cloud", "drum", "fern", "globe", "kite", "lamp", "moon", "pearl", "ring",
    "star", "tower", "wave",
)  # fmt: skip
FORM = (
    "Reply with the four lines of the grid and nothing else, the cells of a line separated by "
    "commas."
)
_HOLES = 4


def draw_latin(random: Random) -> Drawn:
    """Four symbols; the facts are one line of them."""
    symbols = random.sample(SYMBOLS, 4)
    grid = [[symbols[cell] for cell in row] for row in random.choice(LATIN)]
    request = (
        f"Fill a grid of four lines and four columns with {', '.join(symbols)}, so that every line "
        f"and every column has each of the four exactly once. {FORM}"
    )
    return request, written(grid), [symbols]


def latin_solved(facts: Cells, text: str) -> bool:
    """Whether every line and column is a permutation of the symbols."""
    grid, symbols = read(text), sorted(facts[0])
    lines = [*grid, *(list(column) for column in zip(*grid, strict=True))]
    return len(grid) == 4 and all(sorted(line) == symbols for line in lines)


def draw_sudoku(random: Random) -> Drawn:
    """Twelve given cells that leave one solution; the facts are that solution."""
    while True:
        grid = random.choice(SUDOKU)
        holes = set(random.sample(range(16), _HOLES))
        given = [place for place in range(16) if place not in holes]
        fits = [g for g in SUDOKU if all(g[p // 4][p % 4] == grid[p // 4][p % 4] for p in given)]
        if len(fits) == 1:
            break
    solution = [[str(cell + 1) for cell in row] for row in grid]
    shown = [
        ["_" if 4 * row + column in holes else cell for column, cell in enumerate(cells)]
        for row, cells in enumerate(solution)
    ]
    request = (
        "Solve this sudoku of four lines and four columns: every line, every column and every "
        f"corner of two by two cells has each of 1, 2, 3, 4 exactly once, and _ is an empty cell. "
        f"{FORM}\n\n{written(shown)}"
    )
    return request, written(solution), solution


def sudoku_solved(facts: Cells, text: str) -> bool:
    """Whether the grid is the one solution."""
    return read(text) == facts


def written(grid: Cells) -> str:
    """A grid in the format that the prompt asks for."""
    return "\n".join(",".join(row) for row in grid)


def read(text: str) -> Cells:
    """The last run of lines with four cells each."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    runs = [list(run) for whole, run in groupby(rows, _is_row) if whole]
    return runs[-1] if runs else []


def _is_row(cells: list[str]) -> bool:
    return len(cells) == 4 and all(cells)
