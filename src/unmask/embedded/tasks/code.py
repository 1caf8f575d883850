"""Small Python functions from a specification, checked by running them on tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from unmask.embedded.tasks.interpreter import ProgramError, call, parse
from unmask.embedded.tasks.problem import Problem, Task
from unmask.embedded.tasks.vocabulary import FUNCTIONS

_NUMBERS = (-7, -2, 0, 1, 3, 4, 10)
_LISTS = ([3, -1, 4], [8, 2, 5, 6, 7], [-4, -3], [9], [1, 12, 1, 7, -6, 2], [11, 0, 10])


@dataclass(frozen=True)
class Operation:
    """A step of a specification, as words, as an expression of {0}, and as a function."""

    words: str
    code: str
    apply: Callable[[Any], Any]
    compound: bool = True  # its code needs brackets inside a product


def draw(random: Random) -> Problem:
    """Draw a chain of operations, a choice, or a pipeline over a list."""
    kind = random.random()
    if kind < 0.5:
        return _chain(random)
    return _choice(random) if kind < 0.7 else _pipeline(random)


def solved(problem: Problem, text: str) -> bool:
    """Whether the text defines the function and all tests pass."""
    name, tests = problem.facts
    try:
        program = parse(text)
        # repr also tells True from 1
        return all(repr(call(program, name, given)) == repr(wanted) for given, wanted in tests)
    except ProgramError:
        return False


def _arithmetic(random: Random) -> Operation:
    n = random.randint(2, 9)
    return random.choice(
        (
            Operation(f"add {n}", f"{{0}} + {n}", lambda x: x + n),
            Operation(f"subtract {n}", f"{{0}} - {n}", lambda x: x - n),
            Operation(f"multiply by {n}", f"{{0}} * {n}", lambda x: x * n, compound=False),
            Operation("square", "{0} * {0}", lambda x: x * x, compound=False),
            Operation("negate", "-{0}", lambda x: -x, compound=False),
        )
    )


def _chain(random: Random) -> Problem:
    """Two or three operations in a row, as statements, one expression or a lambda."""
    steps = [_arithmetic(random) for _ in range(random.choice((2, 2, 3)))]
    name = random.choice(FUNCTIONS)
    style = random.randrange(3)
    if style == 0:
        lines = "".join(f"\n    x = {step.code.format('x')}" for step in steps)
        answer = f"def {name}(x):{lines}\n    return x"
    else:
        inner = _nested(steps)
        answer = f"def {name}(x): return {inner}" if style == 1 else f"{name} = lambda x: {inner}"
    tests = [(x, _applied(steps, x)) for x in _NUMBERS]
    return _problem(name, "x", [step.words for step in steps], answer, tests)


def _nested(steps: list[Operation]) -> str:
    """All steps as one expression, with brackets where they are necessary."""
    code, atom = "x", True
    for place, step in enumerate(steps):
        grows = not step.compound  # a product or a sign binds tighter than a sum
        if grows and not atom:
            code = f"({code})"
        code = step.code.format(code)
        atom = False
        if place + 1 < len(steps) and steps[place + 1].words == "square":
            code, atom = f"({code})", True
    return code


def _applied(steps: list[Operation], x: Any) -> Any:
    for step in steps:
        x = step.apply(x)
    return x


def _choice(random: Random) -> Problem:
    """One operation if the number is above or below a limit, another if not."""
    then, other = _arithmetic(random), _arithmetic(random)
    while other.words == then.words:
        other = _arithmetic(random)
    n, above = random.randint(0, 9), random.random() < 0.5
    name = random.choice(FUNCTIONS)
    test = f"x {'>' if above else '<'} {n}"
    yes, no = then.code.format("x"), other.code.format("x")
    style = random.randrange(3)
    if style == 0:
        answer = f"def {name}(x):\n    if {test}:\n        return {yes}\n    return {no}"
    elif style == 1:
        answer = f"def {name}(x):\n    return {yes} if {test} else {no}"
    else:
        answer = f"def {name}(x): return {yes} if {test} else {no}"
    words = [f"if x is {'above' if above else 'below'} {n} {then.words}", f"else {other.words}"]
    numbers = sorted({*_NUMBERS, n - 1, n, n + 1})
    tests = [(x, (then if (x > n if above else x < n) else other).apply(x)) for x in numbers]
    return _problem(name, "x", words, answer, tests)


def _filter(random: Random) -> Operation:
    n = random.randint(0, 9)
    return random.choice(
        (
            Operation("keep even", "{0} % 2 == 0", lambda x: x % 2 == 0),
            Operation("keep odd", "{0} % 2 == 1", lambda x: x % 2 == 1),
            Operation(f"keep above {n}", f"{{0}} > {n}", lambda x: x > n),
            Operation(f"keep below {n}", f"{{0}} < {n}", lambda x: x < n),
        )
    )


_ENDS = (
    Operation("sum", "sum({0})", sum),
    Operation("count", "len({0})", len),
    Operation("sort", "sorted({0})", sorted),
    Operation("reverse", "{0}[::-1]", lambda xs: xs[::-1]),
)


def _pipeline(random: Random) -> Problem:
    """Filter a list, change each number, then sum, count, sort or reverse the list."""
    keep = _filter(random) if random.random() < 0.7 else None
    change = _arithmetic(random) if keep is None or random.random() < 0.6 else None
    end = random.choice(_ENDS)
    name = random.choice(FUNCTIONS)
    each = "x" if change is None else change.code.format("x")
    test = "" if keep is None else f" if {keep.code.format('x')}"
    comprehension = f"[{each} for x in xs{test}]"
    if random.random() < 0.5:
        answer = f"def {name}(xs):\n    xs = {comprehension}\n    return {end.code.format('xs')}"
    else:
        answer = f"def {name}(xs): return {end.code.format(comprehension)}"
    words = [step.words for step in (keep, change) if step is not None]
    if change is not None:
        words[-1] += " each"

    def wanted(xs: list[int]) -> Any:
        kept = [x for x in xs if keep is None or keep.apply(x)]
        return end.apply(kept if change is None else [change.apply(x) for x in kept])

    return _problem(name, "xs", [*words, end.words], answer, [(xs, wanted(xs)) for xs in _LISTS])


def _problem(
    name: str, argument: str, words: list[str], answer: str, tests: list[tuple[Any, Any]]
) -> Problem:
    steps = ", then ".join(words) if not words[-1].startswith("else") else ", ".join(words)
    prompt = f"Write {name}({argument}): {steps}."
    return Problem("code", prompt, answer, f"code {argument} {steps}", (name, tests))


CODE = Task("code", "a small Python function from a specification, run on tests", draw, solved)
