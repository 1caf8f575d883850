"""Accuracies of generated texts by length and scorer, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from unmask.lab.benchmarks.base import Benchmark
from unmask.lab.grading.generations import GeneratedText, Generations
from unmask.lab.grading.scorer import Mark, Scorer
from unmask.lab.stats import wilson

Marked = tuple[GeneratedText, dict[str, Mark]]


@dataclass(frozen=True)
class Score:
    """One scorer over the texts of one length."""

    scorer: Scorer
    right: int
    graded: int
    notes: dict[str, int]  # reasons why answers were not judged, with counts

    def record(self) -> dict[str, Any]:
        """For JSON; shares are in percent."""
        low, high = wilson(self.right, self.graded)
        return {
            "scorer": self.scorer.name,
            "version": self.scorer.version,
            "right": self.right,
            "accuracy": round(100 * self.right / self.graded, 2),
            "interval": [round(100 * low, 2), round(100 * high, 2)],
            "notes": self.notes,
        }


@dataclass(frozen=True)
class LengthReport:
    """All scorers over the texts of one length."""

    length: int | None
    graded: int
    missing: int  # examples of the benchmark without a text
    scores: Sequence[Score]

    def record(self) -> dict[str, Any]:
        """For JSON."""
        head = {"length": self.length, "graded": self.graded, "missing": self.missing}
        return {**head, "scores": [score.record() for score in self.scores]}


def summarised(
    marked: Iterable[Marked], scorers: Sequence[Scorer], total: int
) -> list[LengthReport]:
    """One report per length, shortest first."""
    by_length: dict[int | None, list[dict[str, Mark]]] = {}
    for generation, marks in marked:
        by_length.setdefault(generation.length, []).append(marks)
    return [
        LengthReport(
            length, len(rows), total - len(rows), [_score(scorer, rows) for scorer in scorers]
        )
        for length, rows in sorted(by_length.items(), key=lambda item: item[0] or 0)
    ]


def _score(scorer: Scorer, rows: Sequence[dict[str, Mark]]) -> Score:
    marks = [row[scorer.name] for row in rows]
    notes = Counter(note for mark in marks if (note := _note(mark)))
    return Score(scorer, sum(mark.right for mark in marks), len(marks), dict(notes))


def _note(mark: Mark) -> str:
    """Notes on a mark: no verdict in time, or an uncertain one."""
    if mark.detail.get("flagged"):
        return "flagged"
    reason = str(mark.detail.get("reason", ""))
    return reason if reason in ("timeout", "failed") else ""


def record(
    benchmark: Benchmark, generations: Generations, reports: Sequence[LengthReport]
) -> dict[str, Any]:
    """Everything, for JSON."""
    return {
        "task": benchmark.name,
        "version": benchmark.version,
        "unknown": len(generations.unknown),
        "skipped": generations.other,
        "lengths": [report.record() for report in reports],
    }


def lines(
    benchmark: Benchmark, generations: Generations, reports: Sequence[LengthReport]
) -> list[str]:
    """A table per length, in lines of text."""
    lines = []
    for report in reports:
        length = "" if report.length is None else f", length {report.length}"
        lines.append(
            f"{benchmark.name} (version {benchmark.version}){length}: {report.graded} graded, "
            f"{report.missing} missing, {len(generations.unknown)} unknown"
        )
        lines += [_line(score) for score in report.scores] + [""]
    return lines[:-1]


def _line(score: Score) -> str:
    share = 100 * score.right / score.graded
    low, high = (100 * end for end in wilson(score.right, score.graded))
    notes = "".join(f"; {count} {note}" for note, count in score.notes.items())
    return (
        f"  {score.scorer.name:<17} {share:6.2f} %  [{low:.1f}, {high:.1f}]  "
        f"{score.right}/{score.graded}  v{score.scorer.version}: {score.scorer.about}{notes}"
    )
