"""Examples per second of a sweep: in this process, and on one and two workers of a Ray cluster.

    python -m bench.ray [--short] [--json FILE]

The embedded model on word problems, batches of eight, one thread for each worker, on a Ray cluster
of this machine alone. The pace is that of the middle half of the examples, so that neither
starting a worker nor its last batch counts; the best of the rounds, which are made by turns. All
stores must be equal.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.measure import Bench, Column, Row, main
from unmask.lab.grading import Tools
from unmask.lab.ray.join import Cluster, joined
from unmask.lab.sweep.grid import sweep_of
from unmask.lab.sweep.plan import Work, plan
from unmask.lab.sweep.run import run as run_sweep
from unmask.lab.sweep.run_options import RunOptions
from unmask.lab.sweep.store import Store

RULE = "confidence | swd(5) | eb(0.1)"
CLOCKED = ("seconds_", "memory_")  # fields of an answer that depend on the machine


@dataclass(frozen=True)
class Size:
    """Numbers of examples, rounds and workers."""

    examples: int = 400
    rounds: int = 3
    workers: tuple[int, ...] = (1, 2)


SHORT = Size(examples=160, rounds=1)


class Times:
    """Records when each example finished."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def begin(self, work: Work, done: int) -> None:
        """Do nothing."""

    def done(self, work: Work, count: int = 1) -> None:
        """Record the time."""
        self.seen += [perf_counter()] * count

    @property
    def pace(self) -> float:
        """Examples per second in the middle half."""
        first, last = len(self.seen) // 4, 3 * len(self.seen) // 4
        return (last - first) / (self.seen[last] - self.seen[first])


def measured(work: Work, cluster: Cluster | None) -> tuple[float, dict[str, Any]]:
    """The pace of one sweep, and its stored answers."""
    times = Times()
    with tempfile.TemporaryDirectory() as folder, Tools() as tools:
        file = Path(folder) / "store.sqlite"
        run_sweep([work], RunOptions(file, cluster=cluster), tools, times)
        with Store(file) as store:
            rows = store.rows(work.trial)
    return times.pace, {
        row.ask.example: {k: v for k, v in row.answer.items() if not k.startswith(CLOCKED)}
        for row in rows
    }


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """Run each way once per round."""
    size = size or (SHORT if short else Size())
    table = {"task": "words", "rule": RULE, "block": "full", "length": 32, "limit": size.examples}
    (work,) = plan(sweep_of(table, "", {}, "bench").settings, None)
    ways: dict[str, Cluster | None] = {"this process": None}
    ways |= {f"Ray, {n} worker{'s' * (n > 1)}": Cluster(workers=n) for n in size.workers}
    paces: dict[str, list[float]] = {name: [] for name in ways}
    stored = []
    with joined(Cluster(workers=max(size.workers))):
        for _ in range(size.rounds):
            for name, cluster in ways.items():
                pace, answers = measured(work, cluster)
                paces[name].append(pace)
                stored.append(answers)
    assert all(answers == stored[0] for answers in stored), "the stores differ"
    best = {name: max(rates) for name, rates in paces.items()}
    one = best[next(name for name in best if name.startswith("Ray"))]
    return [
        {"way": name, "examples": size.examples, "pace": pace, "ratio": pace / one}
        for name, pace in best.items()
    ]


COLUMNS = (
    Column("way", "who decodes"),
    Column("examples", "examples"),
    Column("pace", "examples/s", ".1f"),
    Column("ratio", "of one worker", ".2f", "x"),
)
BENCH = Bench("ray", "A sweep on one worker and on two", COLUMNS, run)

if __name__ == "__main__":
    main(BENCH)
