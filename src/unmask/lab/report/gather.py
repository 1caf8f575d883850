"""Reads a store: a summary of every trial, and the trials that are incomplete."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from unmask.errors import LabError
from unmask.lab.summary import Summary
from unmask.lab.sweep.store import Store, StoredExample
from unmask.lab.sweep.trial import Trial

HEAVY = ("text", "ids")  # not used by a report, and too large to keep for all examples


@dataclass(frozen=True)
class IncompleteTrial:
    """A trial that has ungraded answers, or fewer graded examples than other trials."""

    trial: Trial
    graded: int
    decoded: int
    most: int  # the most graded examples of a trial with the same task and prompts
    twice: int  # answers to examples that were asked in two wordings


@dataclass(frozen=True)
class Machine:
    """An environment, and the number of graded examples that it produced."""

    name: str  # A, B, ...
    environment: dict[str, Any]
    workers: tuple[int, ...]
    examples: int


@dataclass(frozen=True)
class Results:
    """Everything that a report reads from a store."""

    name: str  # of the store's file
    summaries: tuple[Summary, ...]
    incomplete: tuple[IncompleteTrial, ...]
    machines: tuple[Machine, ...]
    tasks: tuple[dict[str, Any], ...] = ()  # their presets and texts, as the store holds them
    origins: dict[str, str] = field(default_factory=dict)  # the file of each part of a user

    @cached_property
    def trials(self) -> list[Trial]:
        return [summary.trial for summary in self.summaries]

    def machines_of(self, summary: Summary) -> str:
        """The names of the machines that a trial ran on."""
        workers = {row.worker for row in summary.rows}
        return "+".join(each.name for each in self.machines if workers & set(each.workers))


def gather(file: Path) -> Results:
    """Read a store. A store without graded examples is an error."""
    with Store(file, create=False) as store:
        store.check()
        trials = store.trials()
        rows = {trial.key: [_lean(row) for row in store.rows(trial)] for trial in trials}
        workers = sorted({row.worker for each in rows.values() for row in each})
        environments = {worker: store.environment(worker) for worker in workers}
        records = [(trial, store.task(trial)) for trial in trials]
    if not trials:
        raise LabError(f"{file} holds no trial; fill it with `unmask eval` or `unmask sweep`")
    graded = {key: [row for row in each if row.grade is not None] for key, each in rows.items()}
    if not any(graded.values()):
        decoded = sum(map(len, rows.values()))
        raise LabError(
            f"{file} holds {len(trials)} trials with {decoded} answers, none of them graded; run "
            "the command that decoded them again to grade them"
        )
    summaries = [Summary.of(each, graded[each.key]) for each in trials if graded[each.key]]
    most: dict[tuple[str, int, str], int] = {}
    for trial in trials:
        prompts = _prompts(trial)
        most[prompts] = max(most.get(prompts, 0), _distinct(graded[trial.key]))
    incomplete = [
        IncompleteTrial(
            each,
            len(graded[each.key]),
            len(rows[each.key]),
            most[_prompts(each)],
            len(rows[each.key]) - _distinct(rows[each.key]),
        )
        for each in trials
        if not len(graded[each.key]) == len(rows[each.key]) == most[_prompts(each)]
    ]
    machines = _machines(environments, (row for each in graded.values() for row in each))
    origins = {part: file for _, task in records for part, file in task.pop("parts", {}).items()}
    tasks = {_prompts(trial): task for trial, task in records}
    wordings = tuple(tasks[name] for name in sorted(tasks) if tasks[name])
    return Results(file.name, tuple(summaries), tuple(incomplete), machines, wordings, origins)


def _lean(row: StoredExample) -> StoredExample:
    answer = {name: value for name, value in row.answer.items() if name not in HEAVY}
    return replace(row, answer=answer)


def _distinct(rows: Iterable[StoredExample]) -> int:
    return len({row.ask.example for row in rows})


def _prompts(trial: Trial) -> tuple[str, int, str]:
    return trial.task, trial.version, trial.preset


def _machines(
    environments: dict[int, dict[str, Any]], rows: Iterable[StoredExample]
) -> tuple[Machine, ...]:
    """The machines of a store: workers with the same environment count as one machine."""
    count = Counter(row.worker for row in rows)
    alike: dict[str, list[int]] = {}
    for worker, environment in environments.items():
        alike.setdefault(json.dumps(environment, sort_keys=True), []).append(worker)
    return tuple(
        Machine(_letter(place), environments[same[0]], tuple(same), sum(count[w] for w in same))
        for place, same in enumerate(alike.values())
    )


def _letter(place: int) -> str:
    """A to Z, then A1, B1, ..."""
    return chr(ord("A") + place % 26) + (str(place // 26) if place >= 26 else "")
