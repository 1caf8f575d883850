"""The average over the paper's four tasks, ours and the paper's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from unmask.lab.paper import TASKS
from unmask.lab.report.blocks import Column, Notes, TableCell
from unmask.lab.report.findings import Findings
from unmask.lab.report.paper_columns import SAME, averages, misprinted_average
from unmask.lab.report.wording import NONE, number, percent
from unmask.lab.summary import Summary

HEADING = "average of the four tasks"


@dataclass(frozen=True)
class Average:
    """A rule over the paper's four tasks, each of the same weight."""

    accuracy: float
    nfe: float
    paper: tuple[tuple[str, float], ...] = ()  # the paper's averages in percent, by table
    misprint: float | None = None  # what the paper prints instead


def average_of(findings: Findings, summaries: Sequence[Summary]) -> Average | None:
    """The average of a rule, if it was run once on each of the four tasks and on nothing else."""
    if sorted(each.trial.task for each in summaries) != sorted(TASKS):
        return None
    trials = [each.trial for each in summaries]
    model = findings.model_of(trials[0]).counterpart
    theirs = [averages(trial, model) for trial in trials]
    return Average(
        fmean(each.accuracy() for each in summaries),
        fmean(each.mean("nfe") for each in summaries),
        tuple(theirs[0]) if all(theirs) else (),
        misprinted_average(trials[0], model) if model and all(theirs) else None,
    )


def average_columns(
    lines: Sequence[Average | None], notes: Notes
) -> Iterator[tuple[Column, list[TableCell]]]:
    """The columns of the averages, with a cell for each line; none if no line has an average."""
    if not any(lines):
        return
    empty = TableCell(NONE)
    acc = [TableCell(percent(each.accuracy)) if each else empty for each in lines]
    yield Column("acc %", HEADING), acc
    yield Column("NFE", HEADING), [TableCell(number(each.nfe)) if each else empty for each in lines]
    if any(each.paper for each in lines if each):
        paper = [_paper(each, notes) if each else empty for each in lines]
        yield Column("paper acc", HEADING), paper


def _paper(each: Average, notes: Notes) -> TableCell:
    cell = in_tables(each.paper, 2)
    if each.misprint is None:
        return cell
    text = (
        f"The paper prints {each.misprint:.2f}, a misprint: its four figures average "
        f"{each.paper[0][1]:.2f}."
    )
    return replace(cell, small=f"{cell.small} {notes.mark(text)}".strip())


def in_tables(values: Sequence[tuple[str, float]], digits: int = 1) -> TableCell:
    """A figure of the paper by table; other tables are named where they give another one."""
    if not values:
        return TableCell(NONE)
    (_, first), *others = values
    apart = [(table, value) for table, value in others if abs(value - first) >= SAME]
    but = ", ".join(f"{value:.{digits}f} in {table}" for table, value in apart)
    return TableCell(f"{first:.{digits}f}", f"but {but}" if but else "")
