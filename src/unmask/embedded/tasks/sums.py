"""A few sums to compute: the single steps of the word problems."""

from __future__ import annotations

from random import Random

from unmask.embedded.tasks.problem import Problem, Task
from unmask.embedded.tasks.words import LARGEST, STEP

_FEWEST, _MOST = 2, 5


def draw(random: Random) -> Problem:
    """Draw two to five sums like those of the word problems."""
    sums = [_sum(random) for _ in range(random.randint(_FEWEST, _MOST))]
    asked = ", ".join(left for left, _ in sums)
    answer = "So " + " ".join(f"{left} = {right}." for left, right in sums)
    return Problem("sums", f"Write {asked}.", answer, f"sums {asked}", tuple(sums))


def solved(problem: Problem, text: str) -> bool:
    """Whether the text has every sum with its result, in order, and nothing else."""
    wanted = [f"{left} = {right}" for left, right in problem.facts]
    parts = [part.strip() for part in text.strip().removeprefix("So ").split(".")]
    return [part for part in parts if part] == wanted


def _sum(random: Random) -> tuple[str, int]:
    kind = random.random()
    if kind < 0.1:
        a, b = random.randint(2, 6), random.randint(2, 6)
        return f"{a} * {b}", a * b
    if kind < 0.2:
        a, b = random.randint(2, 15), random.randint(1, 20)
        return f"{a} + {b}", a + b
    if kind < 0.25:
        a = random.randint(3, LARGEST // 2)
        return f"{a} * 2", 2 * a
    amount = random.randint(1, STEP)
    if random.random() < 0.5:
        a = random.randint(1, LARGEST - amount)
        return f"{a} + {amount}", a + amount
    a = random.randint(amount + 1, LARGEST)
    return f"{a} - {amount}", a - amount


SUMS = Task("sums", "two to five sums, each worked out", draw, solved)
