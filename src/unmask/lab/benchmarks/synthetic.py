"""The parallel-decoding suite for chat models: lists and puzzles drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from unmask.decoding.options import DecodingOptions
from unmask.lab.benchmarks import lists, puzzles
from unmask.lab.benchmarks.base import Benchmark
from unmask.lab.benchmarks.example import Example
from unmask.lab.benchmarks.preset import Preset, table
from unmask.lab.grading.response import Response
from unmask.lab.grading.scorer import Ruling, Scorer
from unmask.lab.grading.tools import Tools

COUNT = 100  # of each task
SHORTEST, LONGEST = 3, 6  # lists; each length equally often
PRESETS = table(
    Preset(
        name="own",
        source="unmask, after the idea of ParallelBench (arXiv 2510.04767)",
        exact="own",
        decoding=DecodingOptions(length=64, block="full"),
        turns=(("user", "{{request}}"),),
        shot=(("user", "{{request}}"), ("assistant", "{{answer}}")),
        shots=1,
    )
)


@dataclass(frozen=True)
class SyntheticTask:
    """One of the twelve tasks: draws problems by number and checks answers."""

    name: str
    about: str
    draw: Callable[[Random, int], tuple[str, str, Any]]  # request, answer, facts
    solved: Callable[[Any, str], bool]
    wrong: Callable[[str], str]  # an answer, spoiled


def _list_task(operation: lists.ListOperation) -> SyntheticTask:
    def draw(random: Random, number: int) -> tuple[str, str, Any]:
        return operation.draw(random, SHORTEST + number % (LONGEST - SHORTEST + 1))

    def wrong(answer: str) -> str:
        return lists.written((lists.read(answer) or [])[:-1])

    return SyntheticTask(operation.name, operation.about, draw, operation.solved, wrong)


def _puzzle(
    name: str,
    about: str,
    draw: Callable[[Random], puzzles.Drawn],
    solved: Callable[[puzzles.Cells, str], bool],
) -> SyntheticTask:
    def wrong(answer: str) -> str:
        return "\n".join(answer.splitlines()[:-1])

    return SyntheticTask(name, about, lambda random, _: draw(random), solved, wrong)


TASKS: Mapping[str, SyntheticTask] = {
    task.name: task
    for task in (
        *(_list_task(operation) for operation in lists.OPERATIONS),
        _puzzle("latin", "a 4x4 latin square", puzzles.draw_latin, puzzles.latin_solved),
        _puzzle("sudoku", "a 4x4 sudoku", puzzles.draw_sudoku, puzzles.sudoku_solved),
    )
}


def synthetic(name: str, tasks: Sequence[str], count: int = COUNT, seed: int = 0) -> Benchmark:
    """A benchmark of some of the tasks, `count` problems each, no request twice."""
    scorer = Scorer("unmask", "the task's own checker", _solved)
    several = "lists and puzzles" if len(tasks) > 1 else TASKS[tasks[0]].about
    return Benchmark(
        name=name,
        about=f"for chat models: {several}; {count * len(tasks)} problems",
        presets=PRESETS,
        read=lambda _: _examples(tasks, count, seed),
        scorers={scorer.name: scorer},
        gold=lambda example: example.reference + "<|eot_id|>",
        wrong=lambda example: TASKS[example.group].wrong(example.reference),
    )


def _examples(tasks: Sequence[str], count: int, seed: int) -> list[Example]:
    """All problems, task by task; they need no data."""
    examples: list[Example] = []
    for name in tasks:
        task, random = TASKS[name], Random(f"synthetic/{name}/{seed}")
        request, answer, _facts = task.draw(Random(f"synthetic/{name}/shot"), 1)
        shots = ({"request": request, "answer": answer},)
        seen = {request}
        for number in range(count):
            request, answer, facts = task.draw(random, number)
            while request in seen:
                request, answer, facts = task.draw(random, number)
            seen.add(request)
            key, fields = f"{name}/{number}", {"facts": facts}
            slots = {"request": request}
            examples.append(Example(key, len(examples), slots, answer, fields, name, shots))
    return examples


def _solved(example: Example, response: Response, _: Tools) -> Ruling:
    return Ruling(TASKS[example.group].solved(example.fields["facts"], response.cut))


SYNTHETIC = (
    synthetic("synthetic", tuple(TASKS)),
    *(synthetic(f"synthetic-{name}", (name,)) for name in TASKS),
)
