"""Read files of generated texts in the common formats."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError
from unmask.lab.benchmarks.data import json_lines
from unmask.lab.benchmarks.example import Example

IDS = ("id", "task_id", "unique_id")
INDICES = ("index", "idx", "doc_id")  # places in the benchmark, from 0
TEXTS = (
    "text", "generation", "generations", "completion", "response", "output", "generated_text",
    "resps", "prediction",
)  # fmt: skip
TASKS = ("task", "dataset", "benchmark")
LENGTHS = ("gen_length", "length", "max_new_tokens")


@dataclass(frozen=True)
class GeneratedText:
    """A text, its example, and the length it was generated with."""

    place: str  # file:line
    example: Example
    text: str
    length: int | None = None


@dataclass(frozen=True)
class Generations:
    """The texts of a file for one benchmark."""

    texts: Sequence[GeneratedText]
    unknown: Sequence[str]  # places whose id the benchmark does not have
    other: int  # rows of other tasks or lengths


def read_generations(
    file: Path, task: str, examples: Sequence[Example], length: int | None = None
) -> Generations:
    """The rows of a file that belong to a task, matched to its examples by id or index."""
    known = _Known(examples)
    texts: dict[tuple[int | None, int], GeneratedText] = {}
    unknown, other = [], 0
    for place, row in json_lines(file):
        size = _length(row, place)
        if _of_other_task(row, task) or length not in (None, size):
            other += 1
            continue
        example = known.find(row, place)
        if example is None:
            unknown.append(place)
            continue
        new = GeneratedText(place, example, _text(row, place), size)
        old = texts.setdefault((size, example.index), new)
        if old is not new:
            raise UnmaskError(
                f"{place}: a second text for {example.id!r}, which {old.place} has already; "
                "one file holds one text per example and length"
            )
    if not texts:
        raise UnmaskError(f"{file} holds no text for {task}" + _skipped(length, unknown, other))
    return Generations(list(texts.values()), unknown, other)


class _Known:
    """Examples by id and by index."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self.by_id = {str(example.id): example for example in examples}
        self.by_index = {example.index: example for example in examples}
        self.numbered = any(isinstance(example.id, int) for example in examples)

    def find(self, row: Mapping[str, Any], place: str) -> Example | None:
        name = _first(row, IDS)
        if name is not None:
            example = self.by_id.get(str(row[name]))
            return example if example or self.numbered else self._at(row[name])
        name = _first(row, INDICES)
        if name is None:
            raise UnmaskError(f"{place}: no id; a row needs one of {', '.join((*IDS, *INDICES))}")
        return self._at(row[name])

    def _at(self, index: object) -> Example | None:
        digits = str(index)[:20]  # more than any index has, fewer than Python refuses to read
        return self.by_index.get(int(digits)) if digits.isdecimal() else None


def _first(row: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if row.get(name) is not None), None)


def _of_other_task(row: Mapping[str, Any], task: str) -> bool:
    name = _first(row, TASKS)
    return name is not None and isinstance(row[name], str) and _plain(row[name]) != _plain(task)


def _plain(name: str) -> str:
    """A task's name without case, hyphens and owner: openai/MATH-500 is math500."""
    return re.sub(r"[\W_]", "", name.rpartition("/")[2].lower())


def _length(row: Mapping[str, Any], place: str) -> int | None:
    name = _first(row, LENGTHS)
    if name is None:
        return None
    value = row[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise UnmaskError(f"{place}: {name!r} must be a whole number, got {value!r}")
    return value


def _text(row: Mapping[str, Any], place: str) -> str:
    name = _first(row, TEXTS)
    if name is None:
        raise UnmaskError(f"{place}: no text; a row needs one of {', '.join(TEXTS)}")
    value = row[name]
    while isinstance(value, list) and len(value) == 1:  # lm-eval: [[text]]
        value = value[0]
    if not isinstance(value, str):
        raise UnmaskError(f"{place}: {name!r} must be one text, got {type(value).__name__}")
    return value


def _skipped(length: int | None, unknown: Sequence[str], other: int) -> str:
    parts = [] if length is None else [f"of length {length}"]
    parts += [f"{other} rows of other tasks or lengths"] if other else []
    parts += [f"{len(unknown)} unknown ids, first at {unknown[0]}"] if unknown else []
    return f" ({'; '.join(parts)})" if parts else ""
