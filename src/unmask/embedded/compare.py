"""Many rules over the same problems, on all cores: who solves what, at how many forwards."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import torch

from unmask.decoding.loop import Batch
from unmask.decoding.request import Settings, prompt_request
from unmask.embedded.cells import TOP, Cell
from unmask.embedded.tasks import TASKS, Problem, Split
from unmask.errors import LabError
from unmask.models.denoiser import ModelSpec
from unmask.models.load import load
from unmask.models.tokenizer import Tokenizer
from unmask.models.wrappers.memoised import Remembered
from unmask.rules.rule import Rule

AT_ONCE = 50  # problems; each goes through all cells together


@dataclass(frozen=True)
class Outcome:
    """One problem in one cell."""

    solved: bool
    nfe: int
    nfe_eos: int
    tokens: int  # before the end
    text: str


@dataclass(frozen=True)
class Series:
    """Problems of one task, no content twice, and how many tokens an answer may take."""

    task: str
    count: int
    length: int
    split: Split = "test"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.count < 1:
            raise LabError(f"a series of {self.task} needs at least one problem, got {self.count}")

    def problems(self) -> list[Problem]:
        """All of them."""
        return TASKS[self.task].sample(self.split, self.count, self.seed)


Outcomes = dict[Cell, list[Outcome]]


@dataclass(frozen=True)
class Part:
    """Some problems of a series, in all of its cells."""

    series: Series
    places: range
    outcomes: Outcomes


def compare(
    folder: Path, studies: Mapping[Series, Sequence[Cell]], workers: int | None = None
) -> Iterator[Part]:
    """Decode every problem of each series in each of its cells, some problems at a time.

    Each worker is a process with one thread: small matrices do not gain from more.
    """
    parts = [
        (series, tuple(cells), range(i, min(i + AT_ONCE, series.count)))
        for series, cells in studies.items()
        for i in range(0, series.count, AT_ONCE)
    ]
    if not parts:
        raise LabError("there is nothing to compare; give at least one series with its cells")
    workers = min(workers or cores(), len(parts))
    with ProcessPoolExecutor(workers, get_context("spawn"), _set_up, (folder,)) as pool:
        for job in as_completed([pool.submit(_decode, *part) for part in parts]):
            yield job.result()


def gathered(parts: Sequence[Part]) -> dict[Series, Outcomes]:
    """Of every series all outcomes, in the order of its problems."""
    found: dict[Series, Outcomes] = {}
    for part in sorted(parts, key=lambda part: part.places.start):
        known = found.setdefault(part.series, {cell: [] for cell in part.outcomes})
        for cell, outcomes in part.outcomes.items():
            known[cell] += outcomes
    return found


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_LOADED: list[tuple[Remembered, Tokenizer]] = []  # of this worker


def _set_up(folder: Path) -> None:
    torch.set_num_threads(1)
    model, tokenizer = load(folder, dtype="float32")
    _LOADED.append((Remembered(model), tokenizer))


def _decode(series: Series, cells: tuple[Cell, ...], places: range) -> Part:
    model, tokenizer = _LOADED[0]
    problems = series.problems()[places.start : places.stop]
    return Part(series, places, decode_cells(model, tokenizer, problems, cells, series.length))


def decode_cells(
    model: Remembered,
    tokenizer: Tokenizer,
    problems: Sequence[Problem],
    cells: Sequence[Cell],
    length: int,
) -> Outcomes:
    """Decode these problems in every cell, all in one batch."""
    model.forget()
    batch, owner = Batch(model), {}
    prompts = [tokenizer.encode_chat([{"role": "user", "content": p.prompt}]) for p in problems]
    first = Settings(Rule.parse(cells[0].rule))
    requests = [prompt_request(model.spec, prompt, length, first) for prompt in prompts]
    for cell in cells:
        settings = Settings(Rule.parse(cell.rule), cell.block, cell.eos)
        for place, request in enumerate(requests):
            owner[batch.admit(replace(request, settings=settings))] = cell, place
    found: dict[tuple[Cell, int], Outcome] = {}

    def finish(key: int, ids: list[int], nfe: int, nfe_eos: int) -> None:
        cell, place = owner.pop(key)
        text, problem = tokenizer.decode(ids, skip_special=True), problems[place]
        solved = TASKS[problem.task].solved(problem, text)
        found[cell, place] = Outcome(solved, nfe, nfe_eos, len(ids), text)

    while len(batch):
        for step in batch.step():
            for result in step.finished:
                finish(result.key, result.ids, result.nfe, result.nfe_eos)
            for row, key in enumerate(step.keys):
                if key in owner and _only_counts(owner[key][0]):
                    place = owner[key][1]
                    answer = step.tokens[row, len(prompts[place]) :].tolist()
                    size = _settled(answer, model.spec)
                    if size is not None:
                        finish(key, answer[:size], length, int(step.forward[row]) + 1)
                        batch.drop(key)
    return {cell: [found[cell, place] for place in range(len(problems))] for cell in cells}


def _only_counts(cell: Cell) -> bool:
    """Whether a row whose end is fixed would go on, one token per forward, to its full length."""
    return cell.selection == TOP and cell.eos in ("keep", "suppress", "last")


def _settled(answer: list[int], spec: ModelSpec) -> int | None:
    """How many tokens stand before the first end token, if all of them are fixed."""
    for place, token in enumerate(answer):
        if token in spec.stop_ids:
            return place
        if token == spec.mask_id:
            return None
    return None
