"""Finished examples are kept, claims are atomic, and the dead hold nothing."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sqlite3
import threading

import pytest

from tests.lab.makers import answer, asks, trial
from unmask.errors import LabError
from unmask.lab.sweep import store as module
from unmask.lab.sweep.store import Store

fork = multiprocessing.get_context("fork")  # children use SQLite alone, and need not import torch


@pytest.fixture
def file(tmp_path):
    return tmp_path / "store.sqlite"


def worker(file):
    store = Store(file)
    store.sign_in({"torch": "2"})
    return store


def test_what_is_committed_reaches_the_disk(file):
    with worker(file) as store:
        (journal,) = store._base.execute("PRAGMA journal_mode").fetchone()
        (synchronous,) = store._base.execute("PRAGMA synchronous").fetchone()
    assert (journal, synchronous) == ("wal", 1)  # 1 is NORMAL: synchronised at every checkpoint


def test_a_finished_example_is_read_back(file):
    with worker(file) as store:
        (ask,) = asks(1)
        store.add(trial())
        assert store.claim(trial(), ask)
        store.finish(trial(), ask, answer(text="ä"))
    with Store(file) as again:
        (row,) = again.rows(trial())
        assert (row.ask, row.answer, row.grade) == (ask, answer(text="ä"), None)
        assert again.environment(row.worker) == {"torch": "2"}
        assert again.trials() == [trial()]


def test_a_finished_example_cannot_be_claimed_again(file):
    with worker(file) as store:
        (ask,) = asks(1)
        store.claim(trial(), ask)
        store.finish(trial(), ask, answer())
        assert not store.claim(trial(), ask)


def test_an_example_in_flight_belongs_to_one_living_worker(file):
    with worker(file) as first, worker(file) as second:
        (ask,) = asks(1)
        assert first.claim(trial(), ask)
        assert not second.claim(trial(), ask)
        assert first.claim(trial(), ask)  # its own


def test_what_another_worker_has_is_not_finished_by_me(file):
    with worker(file) as first, worker(file) as second:
        (ask,) = asks(1)
        first.claim(trial(), ask)
        second.finish(trial(), ask, answer(text="mine"))
        assert not first.rows(trial())


@pytest.mark.parametrize(
    "change",
    [
        {"rule": "confidence | swd(5) | top(1)"},
        {"weights": "other"},
        {"length": 33},
        {"block": 16},
        {"eos": "suppress"},
        {"cache": "prefix"},
        {"seed": 1},
        {"dtype": "bfloat16"},
        {"version": 2},
        {"preset": "paper"},
        {"temperature": 0.5},
        {"steps": 8},
        {"decoding": 99},
    ],
)
def test_a_changed_setting_never_reuses_a_result(file, change):
    with worker(file) as store:
        (ask,) = asks(1)
        store.claim(trial(), ask)
        store.finish(trial(), ask, answer())
        assert store.claim(trial(**change), ask)


def test_a_changed_prompt_never_reuses_a_result(file):
    with worker(file) as store:
        (ask,) = asks(1)
        store.claim(trial(), ask)
        store.finish(trial(), ask, answer())
        assert store.claim(trial(), module.AskedExample(ask.example, "another sha"))


def test_the_same_weights_in_another_folder_are_the_same_trial(file):
    assert trial(model="/a").key == trial(model="/b").key


def test_a_later_grade_replaces_an_earlier_one(file):
    with worker(file) as store:
        (ask,) = asks(1)
        store.claim(trial(), ask)
        store.finish(trial(), ask, answer())
        store.grade(trial(), ask, {"acc": False}, "words 1")
        store.grade(trial(), ask, {"acc": True}, "words 2")
        (row,) = store.rows(trial())
        assert (row.grade, row.grader) == ({"acc": True}, "words 2")


def claim_and_wait(file, ready):
    store = worker(file)
    assert store.claim(trial(), asks(1)[0])
    ready.set()
    signal.pause()


@pytest.mark.long
def test_what_a_killed_worker_held_is_free_again(file):
    ready = fork.Event()
    child = fork.Process(target=claim_and_wait, args=(file, ready))
    child.start()
    assert ready.wait(60)
    with worker(file) as store:
        assert not store.claim(trial(), asks(1)[0])
        os.kill(child.pid, signal.SIGKILL)
        child.join(10)
        assert store.claim(trial(), asks(1)[0])


def test_a_worker_on_another_machine_is_dead_when_it_is_silent(file, monkeypatch):
    with worker(file) as first, worker(file) as second, worker(file) as third:
        (ask,) = asks(1)
        first.claim(trial(), ask)
        monkeypatch.setattr(module.socket, "gethostname", lambda: "elsewhere")
        assert not second.claim(trial(), ask)
        later = module.time.time() + module.PATIENCE + 1
        monkeypatch.setattr(module.time, "time", lambda: later)
        assert third.claim(trial(), ask)


def claim_all(file, count, begin, claimed):
    store = worker(file)
    begin.wait(60)
    mine = [ask.example for ask in asks(count) if store.claim(trial(), ask)]
    claimed.put(mine)
    begin.wait(60)  # nobody dies before all have claimed


def test_workers_at_once_never_claim_the_same_example(file):
    Store(file).close()
    begin, claimed = fork.Barrier(3), fork.Queue()
    children = [fork.Process(target=claim_all, args=(file, 60, begin, claimed)) for _ in range(3)]
    for child in children:
        child.start()
    taken = [example for _ in children for example in claimed.get(timeout=60)]
    for child in children:
        child.join(60)
    assert sorted(taken) == [ask.example for ask in asks(60)]


def test_missing_examples_keep_their_order(file):
    with worker(file) as store:
        for ask in asks(4)[1:3]:
            store.claim(trial(), ask)
            store.finish(trial(), ask, answer())
        assert store.missing(trial(), asks(4)) == [asks(4)[0], asks(4)[3]]


def test_a_file_that_is_no_store_is_refused_and_left_alone(file):
    file.write_text("my thesis")
    with pytest.raises(LabError, match=r"store\.sqlite cannot be used as a store"):
        Store(file)
    assert file.read_text() == "my thesis"


def test_a_store_of_another_format_is_refused(file):
    Store(file).close()
    base = sqlite3.connect(file)
    base.execute("UPDATE about SET format = 99")
    base.commit()
    base.close()
    with pytest.raises(LabError, match="has format 99, but this unmask writes format 1"):
        Store(file)


def test_a_missing_store_is_not_made_by_reading(file):
    with pytest.raises(LabError, match="does not exist"):
        Store(file, create=False)
    assert not file.exists()


def test_reading_leaves_another_programs_file_alone(file):
    base = sqlite3.connect(file)
    base.execute("CREATE TABLE recipes (name TEXT)")
    base.commit()
    base.close()
    before = file.read_bytes()
    with pytest.raises(LabError, match="cannot be used as a store: no such table: about"):
        Store(file, create=False)
    assert file.read_bytes() == before


@pytest.mark.long
def test_workers_that_create_a_store_at_the_same_moment_all_open_it(tmp_path):
    def create(file, together, errors):
        together.wait()
        try:
            Store(file).close()
        except LabError as error:
            errors.append(error)

    errors = []
    for number in range(60):
        together, file = threading.Barrier(4), tmp_path / f"{number}.sqlite"
        workers = [threading.Thread(target=create, args=(file, together, errors)) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert not errors


def filled(file, count=40):
    with worker(file) as store:
        store.add(trial(), {"task": "words"})
        for ask in asks(count):
            store.claim(trial(), ask)
            store.finish(trial(), ask, answer(text=f"the answer to {ask.example}"))
            store.grade(trial(), ask, {"acc": True}, "words 1")
    return file


def test_a_flipped_bit_in_a_text_is_noticed_and_the_message_says_what_to_do(file):
    filled(file)
    whole = file.read_bytes()
    for text, what in ((b"the answer to 007", "example '007'"), (b'"rule": "conf', "trial")):
        place = whole.index(text) + 3
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with Store(file, create=False) as store, pytest.raises(LabError, match=what) as caught:
            [store.rows(each) for each in store.trials()]
        assert "restore a copy of it, or give another --store" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_damaged_page_is_one_line_and_not_a_traceback(file):
    filled(file, 200)
    whole = file.read_bytes()
    for page in range(1, len(whole) // 4096):
        file.write_bytes(whole[: page * 4096] + b"\xff" * 4096 + whole[(page + 1) * 4096 :])
        with pytest.raises(LabError, match=r"is damaged|cannot be used"):  # noqa: SIM117
            with Store(file, create=False) as store:
                store.check()


def test_a_record_without_a_checksum_is_read_in_an_older_store_only(file):
    filled(file, 1)
    base = sqlite3.connect(file)
    base.execute("UPDATE examples SET answer = ?", (json.dumps(answer(text="old")),))
    base.commit()
    with Store(file, create=False) as store, pytest.raises(LabError, match="not as it was written"):
        store.rows(trial())
    base.execute("PRAGMA user_version = 0")
    base.close()
    with Store(file, create=False) as store:
        assert [row.answer["text"] for row in store.rows(trial())] == ["old"]


def test_a_store_takes_its_file_as_a_text(file):
    Store(str(file)).close()
    with pytest.raises(LabError, match="does not exist"):
        Store(f"{file}.other", create=False)


@pytest.mark.parametrize("create", [True, False])
def test_a_folder_is_not_a_store_and_the_message_says_so(tmp_path, create):
    with pytest.raises(LabError, match="is a folder; a store is a file"):
        Store(tmp_path, create=create)
