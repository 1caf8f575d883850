"""Sweeps on a real Ray cluster: kills lose nothing, and the results are those of a local run."""

from __future__ import annotations

import importlib
import random
import signal
import sqlite3
from contextlib import closing

import pytest

import unmask
from tests.lab.ray.commands import command_of, done, start, wait_for, workers
from tests.lab.sweep.test_run import Counter, contents, swept, works
from unmask.errors import LabError
from unmask.lab.ray import driver as crews
from unmask.lab.ray.driver import Driver, Interrupts
from unmask.lab.ray.join import Cluster, joined
from unmask.lab.sweep.run_options import RunOptions

SWEEP = command_of("unmask sweep")  # with two workers
HERE = SWEEP[: SWEEP.index("--ray")]
EXAMPLES = 40  # of each of the two rules


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
    code, _, told = done(start(*HERE, "--limit", EXAMPLES, "--store", file))
    assert code == 0, told
    return file


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_workers_leave_the_store_of_a_local_run(address, calm, tmp_path, kills):
    file, chance = tmp_path / "store.sqlite", random.Random(0)
    sweep = start(*SWEEP, "--limit", EXAMPLES, "--store", file, RAY_ADDRESS=address)
    killed = set()
    while len(killed) < kills:
        goal = finished(file) + chance.randrange(2, 8)
        wait_for(lambda goal=goal: finished(file) >= goal or sweep.poll() is not None)
        assert sweep.poll() is None, (len(killed), sweep.communicate())
        victim = chance.choice(workers())
        victim.kill()
        killed.add(victim.pid)
    code, output, told = done(sweep)
    assert code == 0, told
    assert len(killed) == kills
    assert "stored in" in output
    assert contents(file) == contents(calm)
    wait_for(lambda: not workers())


def test_an_interrupted_sweep_goes_on_here_and_again_on_the_cluster(address, calm, tmp_path):
    file = tmp_path / "store.sqlite"
    sweep = start(*HERE, "--limit", EXAMPLES, "--store", file, "--ray", address, "--workers", 1)
    wait_for(lambda: finished(file) >= 5)
    sweep.send_signal(signal.SIGINT)
    code, _, told = done(sweep, 60)
    how = f"unmask sweep: interrupted; finished examples are in {file}: the same command goes on"
    assert (code, told.splitlines()[-1]) == (130, how)  # a busy machine may warn before it
    kept = finished(file)
    assert 5 <= kept < EXAMPLES
    (plain, weighted) = works(length=24, limit=EXAMPLES)
    assert swept(file, [plain.only([*plain.by_name][:30])])[0] == 0  # in this process
    kept = finished(file)
    left, counter = swept(file, [plain, weighted], cluster=Cluster(address, 1))
    assert (left, counter.begun, counter.finished) == (0, kept, 2 * EXAMPLES - kept)
    assert contents(file) == contents(calm)


def test_a_rule_that_only_this_process_knows_is_told_of_in_one_line(address, tmp_path, clean_table):
    @unmask.selection
    def only_here(view, scores):
        return view.masked

    some = works(rule="confidence | only_here", length=16, limit=3)
    with pytest.raises(LabError) as caught:
        swept(tmp_path / "store.sqlite", some, cluster=Cluster(address, 1))
    assert "unknown rule part 'only_here'" in str(caught.value)
    assert "install your own parts on every machine" in str(caught.value)
    assert "\n" not in str(caught.value)
    wait_for(lambda: not workers())


def test_a_worker_that_would_decode_something_else_is_refused(address, tmp_path):
    some, progress = works(limit=3), Counter()
    with joined(Cluster(address, 1)) as slots:
        driver = Driver(some, RunOptions(tmp_path / "store.sqlite"), slots, progress)
        driver.marks = dict.fromkeys(driver.marks, "other prompts")
        with pytest.raises(LabError, match="has other weights, other data or another unmask"):
            driver.run(Interrupts())
        driver.dismiss()


def test_a_program_is_part_of_one_cluster_only(address):
    elsewhere = Cluster("127.0.0.1:1024")
    with pytest.raises(LabError, match=f"joined the Ray cluster at {address} already"):  # noqa: SIM117
        with joined(elsewhere):
            pass


def test_a_rule_that_kills_every_worker_ends_the_sweep(address, tmp_path, clean_table, monkeypatch):
    """A plug-in that the driver finds is found by the workers of the same machine too."""
    (tmp_path / "deadly.py").write_text(
        "import os, unmask\n@unmask.selection\ndef deadly(view, scores):\n    os._exit(3)\n"
    )
    info = tmp_path / "deadly-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: deadly\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[unmask.parts]\ndeadly = deadly\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("deadly")  # entry points were read before
    monkeypatch.setattr(crews, "MOST_DEATHS", 2)
    some = works(rule="confidence | deadly", limit=2)
    with (
        pytest.warns(UserWarning, match=r"a worker has died \(1 so far\); another one takes"),
        pytest.raises(LabError, match="2 workers of the cluster died without finishing an"),
    ):
        swept(tmp_path / "store.sqlite", some, cluster=Cluster(address, 1))
    assert finished(tmp_path / "store.sqlite") == 0


def test_workers_import_the_parts_that_a_sweep_was_given(address, tmp_path):
    file, store = tmp_path / "halves.py", tmp_path / "store.sqlite"
    file.write_text(
        "import unmask\n"
        "@unmask.selection\n"
        "def half(view, scores):\n"
        '    """The better half."""\n'
        "    order = unmask.best_first(scores.key, view.masked)\n"
        "    return unmask.first_in(order, (view.masked.sum(-1) + 1) // 2, view.masked)\n"
    )
    sweep = ("sweep", "--task", "copy", "--limit", 2, "--rule", "confidence | half",
             "--import", file, "--store", store, "--workers", 1)  # fmt: skip
    code, _, told = done(start(*sweep, "--ray", RAY_ADDRESS=address))
    assert code == 0, told
    assert finished(store) == 2
