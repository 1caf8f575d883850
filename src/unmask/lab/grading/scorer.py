"""Scorers with a name and a version, and scoring of many answers at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unmask.errors import UnmaskError
from unmask.lab.grading.response import Response
from unmask.lab.grading.tools import Tools
from unmask.lab.sandbox import Program, Verdict

if TYPE_CHECKING:
    from unmask.lab.benchmarks.example import Example

Answers = Sequence[tuple["Example", Response]]


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
            ruling = scorer.rule(example, response, tools)
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


def _details(verdict: Verdict) -> dict[str, Any]:
    details = {"reason": verdict.reason, "detail": verdict.detail, "flagged": verdict.flagged}
    return {key: value for key, value in details.items() if value}
