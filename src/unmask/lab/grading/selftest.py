"""Test a grader before a run: it must accept references and reject spoiled ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from unmask.errors import UnmaskError
from unmask.lab.grading.response import Response
from unmask.lab.grading.scorer import score
from unmask.lab.grading.tools import Tools

if TYPE_CHECKING:
    from unmask.lab.benchmarks.base import Benchmark
    from unmask.lab.benchmarks.example import Example

SAMPLE = 6  # examples; of a benchmark of several tasks at least one each


def selftest(
    benchmark: Benchmark, examples: Sequence[Example], tools: Tools, sample: int = SAMPLE
) -> None:
    """Raise in one line if `acc` is not right on gold answers or not wrong on spoiled ones.

    The examples are spread over all that are given; known awkward ones are left out.
    """
    chosen = spread(benchmark, examples, sample)
    answers = [(example, Response(benchmark.gold(example))) for example in chosen]
    answers += [(example, Response(benchmark.wrong(example))) for example in chosen]
    scorer = benchmark.graders[0]
    for number, marks in score(answers, [scorer], tools):
        wanted, mark = number < len(chosen), marks[scorer.name]
        if mark.right != wanted:
            example = answers[number][0]
            details = "; ".join(f"{key}: {value}" for key, value in mark.detail.items())
            raise UnmaskError(
                f"the grader of {benchmark.name} fails its self-test: the "
                f"{'reference' if wanted else 'spoiled reference'} of {example.id!r} is graded "
                f"{'wrong' if wanted else 'right'}" + (f" ({details})" if details else "")
            )


def spread(benchmark: Benchmark, examples: Sequence[Example], sample: int) -> list[Example]:
    """Evenly spaced examples, and the first of every group."""
    usable = [example for example in examples if example.id not in benchmark.awkward]
    step = max(1, len(usable) / sample)
    chosen = {int(place * step) for place in range(sample) if int(place * step) < len(usable)}
    groups = {example.group: place for place, example in reversed(list(enumerate(usable)))}
    return [usable[place] for place in sorted(chosen | set(groups.values()))]
