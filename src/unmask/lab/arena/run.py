"""Runs the arena: every entry in every field, in one batch where a memo is possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from unmask.errors import LabError
from unmask.lab.arena.contest import Arena, Field
from unmask.lab.arena.entries import Entry
from unmask.lab.benchmarks import benchmark
from unmask.lab.grading import Tools
from unmask.lab.sweep.grid import Setting
from unmask.lab.sweep.plan import Sessions, Work, work_of
from unmask.lab.sweep.run import check_graders, run, summaries
from unmask.lab.sweep.run_options import ProgressListener, RunOptions

Place = tuple[str, int | str, str]  # task, block, EOS policy


@dataclass(frozen=True)
class ArenaPlan:
    """Every trial of the arena, by field and entry."""

    works: dict[Place, dict[Entry, list[Work]]]

    @property
    def all(self) -> list[Work]:
        """Every trial, field by field."""
        return [
            work for field in self.works.values() for members in field.values() for work in members
        ]


def plan_arena(
    entries: Sequence[Entry],
    places: Sequence[Place],
    usual: Setting,
    data: Path | None = None,
) -> ArenaPlan:
    """The trials of every entry in every field; `usual` holds what all of them share."""
    works: dict[Place, dict[Entry, list[Work]]] = {}
    sessions = Sessions()
    for place in places:
        task, block, eos = place
        shared = usual.options.changed({"block": block, "eos": eos})
        field = replace(usual, task=task, options=shared)
        examples, session = benchmark(task).load(data), sessions.of(field)
        works[place] = {
            entry: [
                work_of(replace(field, options=replace(shared, rule=rule)), session, examples)
                for rule in entry.settings
            ]
            for entry in entries
        }
        for members in works[place].values():
            members[0].request(members[0].asks[0])  # wrong options fail before decoding
    return ArenaPlan(works)


def places_of(
    tasks: Sequence[str], blocks: Sequence[int | str], policies: Sequence[str]
) -> list[Place]:
    """All fields: task x window x EOS policy."""
    if not (tasks and blocks and policies):
        raise LabError("an arena needs a task, a block and an EOS policy")
    return list(product(tasks, blocks, policies))


def run_arena(
    plan: ArenaPlan, options: RunOptions, tools: Tools, progress: ProgressListener
) -> Arena:
    """Decode and grade what the store lacks, and compare all rules in every field."""
    every = plan.all
    check_graders(every, tools)
    left = run(every, options, tools, progress)
    if left:
        raise LabError(f"other workers hold {left} examples; run again when they are done")
    measured = iter(summaries(options.store, every))
    return Arena(
        tuple(
            Field.of({entry: [next(measured) for _ in works] for entry, works in field.items()})
            for field in plan.works.values()
        )
    )
