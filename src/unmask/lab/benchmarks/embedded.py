"""The tasks of the embedded model, on problems that it was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from unmask.decoding.options import DecodingOptions
from unmask.embedded.tasks import TASKS, Split
from unmask.lab.benchmarks.base import Benchmark
from unmask.lab.benchmarks.example import Example
from unmask.lab.benchmarks.preset import Preset, table
from unmask.lab.grading.response import Response
from unmask.lab.grading.scorer import Ruling, Scorer
from unmask.lab.grading.tools import Tools

COUNT = 200  # of each task
PRESETS = table(
    Preset(
        name="own",
        source="unmask.embedded.tasks",
        exact="own",
        decoding=DecodingOptions(length=48, block=16),
        turns=(("user", "{{prompt}}"),),
    )
)


def embedded(
    name: str, tasks: Sequence[str], count: int = COUNT, split: Split = "test", seed: int = 0
) -> Benchmark:
    """A benchmark of some of the tasks, `count` problems each, no content twice."""
    scorer = Scorer("unmask", "the task's own checker", _solved)
    several = "tasks of the embedded model" if len(tasks) > 1 else TASKS[tasks[0]].about
    return Benchmark(
        name=name,
        about=f"{several}; {count * len(tasks)} problems of the {split} split",
        presets=PRESETS,
        read=lambda _: list(_examples(tuple(tasks), count, split, seed)),
        scorers={scorer.name: scorer},
        gold=lambda example: example.reference,
        wrong=lambda example: example.reference.rstrip(".")[:-1],
    )


@cache
def _examples(tasks: tuple[str, ...], count: int, split: Split, seed: int) -> tuple[Example, ...]:
    """All problems, task by task; they need no data. A process draws them once."""
    examples: list[Example] = []
    for name in tasks:
        for number, problem in enumerate(TASKS[name].sample(split, count, seed)):
            key, fields = f"{name}/{number}", {"problem": problem}
            slots = {"prompt": problem.prompt}
            examples.append(
                Example(key, len(examples), slots, problem.answer, fields, problem.task)
            )
    return tuple(examples)


def _solved(example: Example, response: Response, _: Tools) -> Ruling:
    return Ruling(TASKS[example.group].solved(example.fields["problem"], response.cut))


EMBEDDED = (embedded("embedded", tuple(TASKS)), *(embedded(name, (name,)) for name in TASKS))
