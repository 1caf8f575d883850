"""Scorers with a name and a version, scoring of many answers at once, and the self-test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unmask.errors import UnmaskError
from unmask.lab.grading.response import Response
from unmask.lab.grading.tools import Tools
from unmask.lab.sandbox import Program, Verdict

if TYPE_CHECKING:
    from unmask.lab.benchmarks.base import Benchmark
    from unmask.lab.benchmarks.example import Example

Answers = Sequence[tuple["Example", Response]]
LONGEST = 1 << 16  # characters of an answer; a scorer's time grows with the square of them
SAMPLE = 6  # examples of a self-test; of a benchmark of several tasks at least one each


@dataclass(frozen=True)
class Ruling:
    """Right, wrong, or a program that the judge decides on; `detail` gives the reason."""

    right: bool | Program
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Mark:
    """The verdict of one scorer on one answer."""

    right: bool
    detail: dict[str, Any]


@dataclass(frozen=True)
class Scorer:
    """A rule that decides whether a response solves an example."""

    name: str
    about: str
    rule: Callable[[Example, Response, Tools], Ruling]
    version: int = 1


@dataclass(frozen=True)
class Grade:
    """One answer by our rules and by DAEDAL's, from the same text."""

    acc: bool
    acc_compat: bool
    detail: dict[str, Any]


def score(
    answers: Answers, scorers: Sequence[Scorer], tools: Tools
) -> Iterator[tuple[int, dict[str, Mark]]]:
    """Yield each answer's marks by scorer, with its number, as soon as all of them are known.

    Equal programs are judged once.
    """
    known: list[dict[str, Mark]] = []
    waiting: dict[Program, list[tuple[int, str, dict[str, Any]]]] = {}
    for number, (example, response) in enumerate(answers):
        known.append({})
        for scorer in scorers:
            ruling = _ruling(scorer, example, response, tools)
            if isinstance(ruling.right, Program):
                waiting.setdefault(ruling.right, []).append((number, scorer.name, ruling.detail))
            else:
                known[number][scorer.name] = Mark(ruling.right, ruling.detail)
        if len(known[number]) == len(scorers):
            yield number, known[number]
    programs = list(waiting)
    for place, verdict in tools.verdicts(programs):
        for number, name, detail in waiting[programs[place]]:
            known[number][name] = Mark(verdict.passed, {**detail, **_details(verdict)})
            if len(known[number]) == len(scorers):
                yield number, {scorer.name: known[number][scorer.name] for scorer in scorers}
    if late := sum(len(marks) < len(scorers) for marks in known):
        raise UnmaskError(f"the judge gave no verdict on {late} of {len(known)} answers")


def _ruling(scorer: Scorer, example: Example, response: Response, tools: Tools) -> Ruling:
    """The ruling on one answer. A text that breaks a scorer is wrong and stops nothing."""
    if len(response.text) > LONGEST:
        return Ruling(False, {"failed": f"the answer has more than {LONGEST} characters"})
    try:
        return scorer.rule(example, response, tools)
    except UnmaskError:  # something is missing that every answer needs
        raise
    except Exception as error:
        return Ruling(False, {"failed": f"{type(error).__name__}: {str(error)[:200]}"})


def _details(verdict: Verdict) -> dict[str, Any]:
    details = {"reason": verdict.reason, "detail": verdict.detail, "flagged": verdict.flagged}
    return {key: value for key, value in details.items() if value}


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
