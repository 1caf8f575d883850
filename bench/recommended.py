"""Which rule should the embedded model have? Chosen on calibration problems, judged on test ones.

All tasks of the embedded model count alike, and every answer has 48 tokens. The criterion was fixed
before any of it ran. On the calibration split the most accurate candidate leads. Of those that are
not significantly worse than it (McNemar's exact p over all problems, Holm's correction for all
candidates), the one with the fewest forwards is chosen. The full window with EOS kept is nobody's
default, so it is measured and never chosen. Then the chosen rule, the runner-up, the leader, the
rule before and one token per forward run on test problems that no page of docs/ uses otherwise.
The rule before gives way if the chosen one solves more (the 95% interval is above 0), or if neither
solves more and the chosen one has fewer forwards: `python -m bench.recommended`. Finished examples
are stored.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean

from unmask.decoding.options import DecodingOptions
from unmask.embedded.tasks import TASKS, Split
from unmask.lab.benchmarks.embedded import COUNT, embedded
from unmask.lab.grading import Tools
from unmask.lab.stats import LEVEL, Mean, Paired, bootstrap_mean, holm, paired
from unmask.lab.summary import Summary
from unmask.lab.sweep.grid import Setting
from unmask.lab.sweep.plan import Sessions, work_of
from unmask.lab.sweep.run import run, summaries
from unmask.lab.sweep.run_options import RunOptions, Silent

LENGTH = 48


@dataclass(frozen=True)
class Candidate:
    """A rule with its window."""

    rule: str
    block: int | str = 16
    eos: str = "keep"

    @property
    def allowed(self) -> bool:
        """Whether it may be a default."""
        return (self.block, self.eos) != ("full", "keep")

    def __str__(self) -> str:
        window = "full window" if self.block == "full" else f"blocks of {self.block}"
        return f"`{self.rule}`, {window}" + (", EOS last" if self.eos == "last" else "")


BEFORE, ONE_BY_ONE = Candidate("entropy | threshold(-0.1)"), Candidate("confidence | top(1)")
WINDOWS = ((16, "keep"), (8, "keep"), ("full", "last"))
THRESHOLDS = {"entropy": (-0.1, -0.03), "confidence": (0.9, 0.95), "margin": (0.9, 0.95)}
GRID = tuple(
    Candidate(f"{score} | {selection}", *window)
    for score, thresholds in THRESHOLDS.items()
    for selection in (
        *(f"threshold({threshold})" for threshold in thresholds),
        *(f"{swd}eb({gamma})" for swd in ("", "swd(1) | ") for gamma in (0.1, 0.03)),
    )
    for window in WINDOWS
)
OTHERS = (  # the rest of the eight that the rule before was picked from, and the arena's best
    ONE_BY_ONE,
    Candidate("confidence | top(1)", 8),
    Candidate("entropy | top(1)", "full", "last"),
    Candidate("entropy | swd(1) | threshold(-0.1)", "full"),
    Candidate("entropy | eb(0.005)", "full", "last"),
    Candidate("confidence | less_dream(0.75)", "full"),
    Candidate("confidence | less_dream(0.75)", "full", "last"),
    Candidate("confidence | threshold(0.9, test=ge)", "full"),
    Candidate("confidence | threshold(0.9, test=ge)", "full", "last"),
)


@dataclass(frozen=True)
class Measured:
    """What a candidate did on the same problems, task by task."""

    tasks: tuple[Summary, ...]

    @cached_property
    def solved(self) -> list[bool]:
        return [right for task in self.tasks for right in task.solved()]

    @cached_property
    def forwards(self) -> list[float]:
        return [count for task in self.tasks for count in task.values("nfe")]

    @property
    def accuracy(self) -> float:
        return fmean(self.solved)

    @property
    def nfe(self) -> float:
        return fmean(self.forwards)

    def beyond(self, other: Measured) -> tuple[Paired, Mean]:
        """How many more problems it solves than another one, and with how many more forwards."""
        more = [a - b for a, b in zip(self.forwards, other.forwards, strict=True)]
        return paired(other.solved, self.solved), bootstrap_mean(more)

    def __str__(self) -> str:
        return f"{100 * self.accuracy:.1f} @ {self.nfe:.1f}"


Table = dict[Candidate, Measured]


def measure(
    candidates: Sequence[Candidate], tasks: Sequence[str], split: Split, part: slice, folder: Path
) -> Table:
    """Decode and grade a part of the problems of a split under every candidate."""
    benches = [embedded(task, (task,), part.stop, split) for task in tasks]
    sessions, works = Sessions(), []
    for task, bench in zip(tasks, benches, strict=True):
        for each in candidates:
            options = DecodingOptions(each.rule, LENGTH).changed(
                {"block": each.block, "eos": each.eos}
            )
            setting = Setting("embedded", task, options)
            works.append(work_of(setting, sessions.of(setting), bench.load(None)[part]))
    folder.mkdir(parents=True, exist_ok=True)
    options_of_run = RunOptions(folder / f"{split}.sqlite", memo=True)
    with Tools.of(benches, False) as tools:
        run(works, options_of_run, tools, Silent())
    results = summaries(options_of_run.store, works)
    count = len(candidates)
    return {each: Measured(tuple(results[i::count])) for i, each in enumerate(candidates)}


def rank(table: Table, who: Iterable[Candidate]) -> list[Candidate]:
    """The most accurate first; of equal ones, the one with fewer forwards."""
    return sorted(who, key=lambda each: (-table[each].accuracy, table[each].nfe))


def choose(table: Table) -> tuple[dict[Candidate, float], list[Candidate]]:
    """Holm's p of every candidate against the leader, and those that may be chosen, best first."""
    leader, *_ = rank(table, (each for each in table if each.allowed))
    losses = {each: table[each].beyond(table[leader])[0] for each in table if each != leader}
    ps = dict(zip(losses, holm([loss.p for loss in losses.values()]), strict=True))
    worse = {each for each, loss in losses.items() if ps[each] < LEVEL and loss.difference < 0}
    good = [each for each in table if each.allowed and each not in worse]
    good.sort(key=lambda each: (table[each].nfe, -table[each].accuracy))
    return {leader: 1.0, **ps}, good


def calibration_lines(table: Table, ps: dict[Candidate, float]) -> Iterator[str]:
    """Every candidate, the most accurate first."""
    yield "| candidate | accuracy @ forwards | p |"
    yield "|---|---|---|"
    for each in rank(table, table):
        yield f"| {_cell(each)} | {table[each]} | {ps[each]:.2g} |"


def test_lines(table: Table, tasks: Sequence[str]) -> Iterator[str]:
    """What every rule does on each task, and how it differs from two of them."""
    yield "| | " + " | ".join(map(_cell, table)) + " |"
    yield "|---|" + "---|" * len(table)
    for place, task in enumerate(tasks):
        cells = [Measured((measured.tasks[place],)) for measured in table.values()]
        yield f"| {task} | " + " | ".join(map(str, cells)) + " |"
    yield "| all | " + " | ".join(map(str, table.values())) + " |"
    for base in (BEFORE, ONE_BY_ONE):
        differences = [measured.beyond(table[base]) for measured in table.values()]
        yield (
            f"| points more than {_cell(base)} | "
            + " | ".join(
                f"{100 * right.difference:+.1f} [{100 * right.interval.low:+.1f}, "
                f"{100 * right.interval.high:+.1f}]"
                for right, _ in differences
            )
            + " |"
        )
        yield (
            "| forwards more | "
            + " | ".join(
                f"{cost.mean:+.1f} [{cost.interval.low:+.1f}, {cost.interval.high:+.1f}]"
                for _, cost in differences
            )
            + " |"
        )


def gives_way(table: Table, chosen: Candidate) -> bool:
    """Whether the rule before gives way to the chosen one, by the test problems."""
    right, cost = table[chosen].beyond(table[BEFORE])
    if right.interval.low > 0:
        return True
    return right.interval.high >= 0 and cost.interval.high < 0


def _cell(candidate: Candidate) -> str:
    return str(candidate).replace("|", "\\|")


def main(words: Sequence[str] | None = None) -> None:
    """Choose on the calibration split, judge on the test split."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--calibration", type=int, default=80, help="problems of each task")
    parser.add_argument("--test", type=int, default=200, help="problems of each task")
    parser.add_argument("--folder", type=Path, default=Path("build/recommended"))
    given = parser.parse_args(words)
    tasks, folder = given.tasks.split(","), given.folder
    known = measure((*GRID, *OTHERS), tasks, "calibration", slice(given.calibration), folder)
    ps, good = choose(known)
    print(*calibration_lines(known, ps), sep="\n")
    leader = rank(known, good)[0]
    print(
        f"\n{len(good)} of {len(known)} may be chosen. The leader: {leader}. Chosen: {good[0]}.\n"
    )
    tested = dict.fromkeys((*good[:2], leader, BEFORE, ONE_BY_ONE))
    part = slice(COUNT, COUNT + given.test)  # the lab, and so the docs, use the first COUNT
    table = measure(list(tested), tasks, "test", part, folder)
    print(*test_lines(table, tasks), sep="\n")
    word = "gives way" if gives_way(table, good[0]) else "stays"
    print(f"\nThe rule before {word}.")


if __name__ == "__main__":
    main()
