"""Sweeps on a real Ray cluster: kills lose nothing, and the results are those of a local run."""

from __future__ import annotations

import importlib
import random
import runpy
import signal
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event

import pytest

import unmask
from tests import new_process
from tests.lab.ray.commands import command_of, wait_for, workers
from tests.lab.sweep.test_run import Counter, contents, swept, works
from tests.paths import ROOT
from unmask.errors import LabError
from unmask.lab.ray import driver as crews
from unmask.lab.ray.driver import Driver, Interrupts
from unmask.lab.ray.join import Cluster, joined
from unmask.lab.sweep.run_options import RunOptions
from unmask.lab.sweep.store import Store

# Beside other tests a worker may need more than half a minute to start.
pytestmark = pytest.mark.filterwarnings("always:no worker has started:UserWarning")

SWEEP = command_of("unmask sweep")  # with two workers
HERE = SWEEP[: SWEEP.index("--ray")]
EXAMPLE = command_of("examples/ray_sweep.py")
EXAMPLES = 20  # of each of the two rules, in the sweep and in the example


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
    folder = tmp_path_factory.mktemp("calm")
    code, _, told = new_process.unmask(folder, [*HERE, "--store", "store.sqlite"])
    assert code == 0, told
    return folder / "store.sqlite"


@pytest.mark.filterwarnings("always:a worker has died:UserWarning")
@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_workers_leave_the_store_of_a_local_run(address, calm, tmp_path, monkeypatch, kills):
    monkeypatch.setenv("RAY_ADDRESS", address)
    file, ended = tmp_path / "store.sqlite", Event()
    with ThreadPoolExecutor(1) as pool:
        killed = pool.submit(killed_workers, file, kills, ended)
        code, output, told = new_process.unmask(tmp_path, [*SWEEP, "--store", str(file)])
        ended.set()
    assert code == 0, told
    assert "a worker has died (1 so far); another one takes its place" in told
    assert len(killed.result()) == kills
    assert "stored in" in output
    assert contents(file) == contents(calm)
    wait_for(lambda: not workers())


def killed_workers(file, kills, ended):
    """Kill workers of a sweep, each after some more examples; returns their numbers."""
    killed, chance = set(), random.Random(0)
    while len(killed) < kills:
        goal = finished(file) + chance.randrange(1, 4)
        wait_for(lambda goal=goal: finished(file) >= goal or ended.is_set())
        assert not ended.is_set(), f"the sweep ended after {len(killed)} kills"
        victim = chance.choice(wait_for(workers))
        victim.kill()
        killed.add(victim.pid)
    return killed


def test_an_interrupted_sweep_goes_on_here_and_in_the_example_of_the_page(
    address, calm, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("RAY_ADDRESS", address)
    file, finish = tmp_path / "store.sqlite", Store.finish

    def finish_and_interrupt(*arguments):
        finish(*arguments)
        if finished(file) == 5:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "finish", finish_and_interrupt)
        sweep = [*HERE, "--store", str(file), "--ray", "--workers", "1"]
        code, _, told = new_process.unmask(tmp_path, sweep)
    signal.signal(signal.SIGINT, before)
    how = f"unmask sweep: interrupted; finished examples are in {file}; "
    how += "run the same command again to resume"
    assert (code, told.splitlines()[-1]) == (130, how)  # a busy machine may warn before it
    assert finished(file) == 5
    plain, _ = works(length=24, limit=EXAMPLES)
    assert swept(file, [plain.only([*plain.by_name][:15])])[0] == 0  # in this process
    kept = finished(file)
    assert 15 <= kept < 2 * EXAMPLES
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", [*EXAMPLE, str(file)])
    runpy.run_path(str(ROOT / EXAMPLE[0]), run_name="__main__")  # on two workers
    printed = capsys.readouterr()
    assert printed.err.count("done: words") == 2
    assert [line.split()[1] for line in printed.out.splitlines()[1:]] == [
        "confidence|eb(0.1)", "confidence|swd(5)|eb(0.1)",
    ]  # fmt: skip
    assert contents(file) == contents(calm)


def test_workers_know_the_parts_they_were_given_and_name_the_others(address, tmp_path, monkeypatch):
    @unmask.selection
    def only_here(view, scores):
        return view.masked

    monkeypatch.setenv("RAY_ADDRESS", address)
    (tmp_path / "halves.py").write_text(HALF)
    sweep = ["sweep", "--task", "copy", "--limit", "2", "--import", "halves.py", "--ray",
             "--workers", "1", "--rule"]  # fmt: skip
    code, _, told = new_process.unmask(tmp_path, [*sweep, "confidence | {half,only_here}"])
    assert code == 2
    assert "unknown rule part 'only_here'" in told  # and not 'half', which comes first
    assert "install your own parts on every machine" in told
    assert told.count("\n") == 1
    wait_for(lambda: not workers())
    code, _, told = new_process.unmask(tmp_path, [*sweep, "confidence | half"])
    assert code == 0, told
    assert finished(tmp_path / "unmask-lab.sqlite") == 2


HALF = '''\
import unmask
@unmask.selection
def half(view, scores):
    """The better half."""
    order = unmask.best_first(scores.key, view.masked)
    return unmask.first_in(order, (view.masked.sum(-1) + 1) // 2, view.masked)
'''


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


def test_a_rule_that_kills_every_worker_ends_the_sweep(address, tmp_path, monkeypatch):
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
    monkeypatch.setattr(crews, "MOST_DEATHS", 1)
    some = works(rule="confidence | deadly", limit=2)
    with pytest.raises(LabError, match="1 workers of the cluster died without finishing an"):
        swept(tmp_path / "store.sqlite", some, cluster=Cluster(address, 1))
    assert finished(tmp_path / "store.sqlite") == 0
