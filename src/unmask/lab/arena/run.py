"""Runs the arena: every entry in every field, in one batch where a memo is possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from unmask.errors import LabError
from unmask.lab.arena.contest import Arena, Field
from unmask.lab.arena.entries import Entry, Roster
from unmask.lab.benchmarks import benchmark
from unmask.lab.grading import Tools
from unmask.lab.sweep.grid import Setting
from unmask.lab.sweep.plan import Sessions, Work, work_of
from unmask.lab.sweep.run import check_graders, run, summaries
from unmask.lab.sweep.run_options import ProgressListener, RunOptions

Place = tuple[str, int | str, str]  # task, block, EOS policy


@dataclass(frozen=True)
class ArenaPlan:
    """Every setting of the arena, by field and entry."""

    settings: dict[Place, dict[Entry, list[Setting]]]
    left_out: dict[str, str]  # why recipes do not run

    @property
    def all(self) -> list[Setting]:
        """Every setting, field by field."""
        return [
            setting
            for field in self.settings.values()
            for members in field.values()
            for setting in members
        ]

    def works(self, data: Path | None) -> list[Work]:
        """A trial for every setting, in their order; wrong options fail here."""
        sessions, works = Sessions(), []
        examples = {place[0]: benchmark(place[0]).load(data) for place in self.settings}
        for setting in self.all:
            works.append(work_of(setting, sessions.of(setting), examples[setting.task]))
            works[-1].request(works[-1].asks[0])
        return works


def plan_arena(rules: Roster, places: Sequence[Place], usual: Setting) -> ArenaPlan:
    """The settings of every rule in every field; `usual` holds what all of them share."""
    settings: dict[Place, dict[Entry, list[Setting]]] = {}
    for place in places:
        task, block, eos = place
        shared = usual.options.changed({"block": block, "eos": eos})
        settings[place] = {
            entry: [
                replace(usual, task=task, options=replace(shared, rule=rule))
                for rule in entry.settings
            ]
            for entry in rules.entries
        }
    return ArenaPlan(settings, rules.left_out)


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
    every = plan.works(options.data)
    check_graders(every, tools)
    left = run(every, options, tools, progress)
    if left:
        raise LabError(f"other workers hold {left} examples; run again when they are done")
    measured = iter(summaries(options.store, every))
    return Arena(
        tuple(
            Field.of({entry: [next(measured) for _ in each] for entry, each in field.items()})
            for field in plan.settings.values()
        ),
        plan.left_out,
    )
