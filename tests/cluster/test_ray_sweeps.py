"""Sweeps on a real Ray cluster: kills lose nothing, and the results are those of a local run."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing

import pytest

from cluster.commands import SWEEP, done, start, wait_for, workers
from lab.test_sweeps import contents

pytestmark = pytest.mark.xdist_group("ray")
KILLS, EXAMPLES = 10, 80  # of each of the two rules


def finished(file):
    """How many examples have an answer, whatever it is."""
    if not file.is_file():
        return 0
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30)) as base:
        try:
            (count,) = base.execute("SELECT COUNT(answer) FROM examples").fetchone()
        except sqlite3.OperationalError:  # the tables are not yet there
            return 0
    return count


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """The store of an undisturbed local run."""
    file = tmp_path_factory.mktemp("calm") / "store.sqlite"
    code, _, told = done(start(*SWEEP, "--limit", EXAMPLES, "--store", file))
    assert code == 0, told
    return file


def test_ten_killed_workers_leave_the_store_of_a_local_run(address, calm, tmp_path):
    file, chance = tmp_path / "store.sqlite", random.Random(0)
    sweep = start(*SWEEP, "--limit", EXAMPLES, "--store", file, "--ray", address, "--workers", 2)
    killed = set()
    while len(killed) < KILLS:
        goal = finished(file) + chance.randrange(2, 8)
        wait_for(lambda goal=goal: finished(file) >= goal or sweep.poll() is not None)
        assert sweep.poll() is None, (len(killed), sweep.communicate())
        victim = chance.choice(workers())
        victim.kill()
        killed.add(victim.pid)
    code, output, told = done(sweep)
    assert code == 0, told
    assert len(killed) == KILLS
    assert "kept in" in output
    assert contents(file) == contents(calm)
    assert workers() == []
