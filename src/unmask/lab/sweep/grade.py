"""Grade stored answers, and grade them again when a grader has changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from unmask.lab.grading import Tools
from unmask.lab.sweep.plan import Work
from unmask.lab.sweep.store import AskedExample, Store


def grader_of(work: Work) -> str:
    """Names and versions of the scorers that make a grade."""
    scorers = ", ".join(f"{scorer.name} {scorer.version}" for scorer in work.bench.graders)
    return f"{work.bench.name} {work.bench.version}: {scorers}"


def grade(
    store: Store,
    work: Work,
    tools: Tools,
    on_done: Callable[[AskedExample], None] = lambda ask: None,
) -> int:
    """Grade all stored answers that the current grader has not graded; returns how many."""
    grader, wanted = grader_of(work), set(work.asks)
    rows = [row for row in store.rows(work.trial) if row.ask in wanted and row.grader != grader]
    answers = []
    for row in rows:
        example = work.by_name[row.ask.example]
        text = row.answer["text"]
        answers.append((example, work.bench.response(example, text, work.preset.name)))
    for number, verdict in work.bench.grades(answers, tools):
        store.grade(work.trial, rows[number].ask, asdict(verdict), grader)
        on_done(rows[number].ask)
    return len(rows)
